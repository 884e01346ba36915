"""Which candidate runs a region: by a fixed rule, the first that a recipe offers, recipes in a fixed order."""

from __future__ import annotations

from typing import cast

from tilework.candidates.candidate import Candidate, Recipe
from tilework.candidates.region import Region
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics
from tilework.variants import find_variant

ORDER = ("online_attention", "winograd", "vector_nest", "plain_nest")
"""Recipes from the most to the least specialised."""


def choose(region: Region, machine: CpuMachine, numerics: Numerics, without: frozenset[str] = frozenset()) -> Candidate:
    """The candidate to run; there always is one, as `plain_nest` takes every region. `without`: recipes left out."""
    for name in ORDER:
        if name in without:
            continue
        recipe = cast("Recipe", find_variant("tilework.recipes.cpu", name, "RECIPE"))
        offered = recipe.candidates(region, machine, numerics)
        if offered:
            return offered[0]
    raise AssertionError("plain_nest offers a candidate for every region")
