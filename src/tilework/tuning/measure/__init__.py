"""Measuring schedules: in a child process, in pairs, with everything that can go wrong as an outcome."""
