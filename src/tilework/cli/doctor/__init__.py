"""What `tilework doctor` looks at, one subject a file; each gives facts, and advice where something is not well."""
