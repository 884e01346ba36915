"""Timed claims: `python -m benchmarks NAME`. One benchmark a file, found by its file name."""
