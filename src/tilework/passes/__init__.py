"""Rewrites of graphs: graph to graph, one a file, value-exact, never consulting cost."""
