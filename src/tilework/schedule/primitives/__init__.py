"""The primitives, one a file, found by file name. Each has a `check` (why it may be done here) and an `apply`."""
