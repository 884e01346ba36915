"""Operators that read or write at indices found in data."""
