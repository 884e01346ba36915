"""The command line: one command a file, found by its name."""
