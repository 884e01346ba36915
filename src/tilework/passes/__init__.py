"""Rewrites of graphs: graph to graph, one a file, never consulting cost; value-exact unless a file says otherwise."""
