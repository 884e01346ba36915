"""Operators that read or write at positions held in a tensor."""
