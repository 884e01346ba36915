"""Operators whose result at an index depends on their operands at that index alone."""
