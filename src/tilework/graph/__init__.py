"""The `Graph` program: typed tensor operations in single-assignment form. Knows no operator's meaning (see `ops`)."""
