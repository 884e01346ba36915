"""Index notation: the language of every operator's definition and of user computations, and its loop programs."""
