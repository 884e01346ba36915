"""Operators that combine many elements into one, or run along a dimension."""
