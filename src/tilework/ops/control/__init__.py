"""Operators that hold subgraphs: branches and loops."""
