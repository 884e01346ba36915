"""Schedules: named, checked rewrites of a loop program, and the trace of those applied."""
