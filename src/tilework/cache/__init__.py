"""What was compiled, kept on disk: content keys, entries with a checksum, one folder with a cap."""
