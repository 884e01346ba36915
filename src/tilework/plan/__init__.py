"""The `Plan`: what runs, in which order, on which queue, over which bytes. Knows no operator."""
