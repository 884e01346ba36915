"""Transcendental functions as expressions over basic ones, one family a file, each with its stated error."""
