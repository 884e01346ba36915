"""Frontends: other people's formats to graphs, one folder a format; `compile` picks the one that fits."""
