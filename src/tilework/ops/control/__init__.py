"""Branches and repetition: operators that hold subgraphs."""
