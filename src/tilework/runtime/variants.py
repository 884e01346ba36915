"""Executables of one model for exact shapes and values, compiled when first needed, the least recently used dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tilework.errors import TileworkError
from tilework.runtime.forks import in_child

if TYPE_CHECKING:
    from tilework.runtime.executable import Executable

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

Shapes: TypeAlias = "tuple[tuple[str, tuple[int, ...]], ...]"

Held: TypeAlias = "tuple[tuple[str, str, tuple[int, ...], bytes], ...]"
"""What inputs hold: name, element type, shape, bytes."""

CompileFor: TypeAlias = "Callable[[Mapping[str, tuple[int, ...]], Mapping[str, Array]], Executable]"
"""Compiles for the shape of every input by name, and for what some inputs hold."""

KEPT = 16
"""Variants that are kept."""


class ShapeVariants:
    """What serves the shapes that a model allows and its first compilation does not.

    A compilation for free dimensions may take two of them to be equal, or larger than 1. Calls for which that does not
    hold run code for their very shapes instead. Threads: any thread may ask; compilations are one at a time.
    """

    def __init__(self, compile_for: CompileFor, limit: int = KEPT) -> None:
        """`compile_for` raises `TileworkError` for what the model does not allow."""
        self._compile_for = compile_for
        self._limit = limit
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[Shapes, Held], Executable | TileworkError] = OrderedDict()
        in_child(self._after_fork)

    def __call__(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array] | None = None) -> Executable:
        """The executable for these shapes and values. Raises what `compile_for` raises, also when asked again."""
        held = dict(values or {})
        key = (
            tuple(sorted(shapes.items())),
            tuple(sorted((name, array.dtype.name, array.shape, array.tobytes()) for name, array in held.items())),
        )
        with self._lock:
            found = self._found.get(key)
            if found is None:
                try:
                    found = self._compile_for(dict(shapes), held)
                except TileworkError as error:
                    found = error
                self._found[key] = found
                while len(self._found) > self._limit:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
        if isinstance(found, TileworkError):
            raise found
        return found

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    @property
    def executables(self) -> tuple[Executable, ...]:
        """The executables that are kept."""
        return tuple(found for found in tuple(self._found.values()) if not isinstance(found, TileworkError))

    @property
    def shapes(self) -> tuple[dict[str, tuple[int, ...]], ...]:
        """The shapes that variants are kept for."""
        return tuple(dict(key) for (key, _), found in self._found.items() if not isinstance(found, TileworkError))


def shapes_of(names: tuple[str, ...], arguments: tuple[Any, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of arguments by the names of the inputs."""
    return {name: tuple(np.shape(argument)) for name, argument in zip(names, arguments, strict=True)}
