"""Decisions about the whole graph: which nodes form regions, and which candidate runs each."""
