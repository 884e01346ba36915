"""Other ways to compute the same values, each with an error of its own: a computation that is then scheduled as any."""
