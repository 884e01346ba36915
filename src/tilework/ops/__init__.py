"""What graph operators mean: one operator a file, in a folder per family, found by its name."""
