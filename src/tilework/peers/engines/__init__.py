"""One engine a file, found by its name: Tilework itself, and the peers it is compared with."""
