"""Operators that take and return a token: random numbers and checks."""
