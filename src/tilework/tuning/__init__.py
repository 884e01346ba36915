"""How to search for a good schedule: spaces, strategies, cost models, and the one measuring code."""
