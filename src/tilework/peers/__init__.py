"""A model run by Tilework and by other engines, each in a process of its own: what they compute, how long it takes."""
