"""The commands, one a file with `command`."""
