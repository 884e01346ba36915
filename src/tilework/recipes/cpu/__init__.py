"""Recipes for CPUs, one a file with `RECIPE`."""
