"""Regions and the candidates that recipes offer for them: what can be chosen."""
