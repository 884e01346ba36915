"""Things to see and to start from: `python -m examples.NAME`."""
