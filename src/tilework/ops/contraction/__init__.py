"""Operators that multiply and sum: dot products and convolutions."""
