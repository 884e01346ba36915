"""In which order the sides of a comparison take their turns: what disturbs the machine should disturb all of them."""

from __future__ import annotations

from collections.abc import Iterator


def turns(sides: int, rounds: int) -> Iterator[tuple[int, ...]]:
    """The sides of each round, side by number; each round starts with the next one, so none is always the first."""
    order = tuple(range(sides))
    for turn in range(rounds):
        first = turn % sides
        yield order[first:] + order[:first]
