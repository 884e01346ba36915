"""Machines as data: features, limits, caches. One machine a file, found by its name with `machine.finder.machine`."""
