"""Where values live in memory: lifetimes, offsets in arenas, bytes used again in place."""
