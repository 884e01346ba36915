"""Operators that move elements and change none."""
