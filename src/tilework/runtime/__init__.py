"""Running compiled code: contexts, threads, memory, calls."""
