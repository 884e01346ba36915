"""Operators that combine many elements into one, and running combinations."""
