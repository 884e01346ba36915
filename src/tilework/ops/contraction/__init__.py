"""Products summed over shared dimensions: matrix products and convolutions."""
