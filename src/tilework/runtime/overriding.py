"""Initialisers that a call may give another value: the model compiled once more, with these as inputs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tilework.errors import CallError, TileworkError
from tilework.runtime.forks import in_child
from tilework.runtime.ports import Port

if TYPE_CHECKING:
    from tilework.runtime.executable import Executable
    from tilework.runtime.per_shape import PerShape

CompileWith: TypeAlias = "Callable[[tuple[str, ...]], Executable | PerShape]"
"""Compiles with some initialisers, by name, as inputs behind the model's plain ones."""

KEPT = 16
"""Compilations that are kept, one for each set of names, the least recently used dropped."""


class Overriding:
    """What serves calls that give initialisers a value.

    The executable itself holds them as constants, folded and packed. Threads: any thread may ask; compilations are one
    at a time.
    """

    def __init__(
        self, ports: tuple[Port, ...] | Callable[[], tuple[Port, ...]], compile_with: CompileWith | None
    ) -> None:
        """`ports`: the initialisers that may be given, or what makes the list; `compile_with` is None where there is no
        model to compile.
        """
        self._ports = ports
        self.compile_with = compile_with
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[str, ...], Executable | PerShape | TileworkError] = OrderedDict()
        in_child(self._after_fork)

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """The initialisers that may be given, in the model's order."""
        return self._ports() if callable(self._ports) else self._ports

    @cached_property
    def _places(self) -> dict[str, int]:
        return {port.name: place for place, port in enumerate(self.ports)}

    def serving(self, given: Mapping[str, object]) -> Executable | PerShape | None:
        """What takes these initialisers as inputs too; None where none is among what is given by name.

        Raises `CallError` 1701 where there is no model to compile, otherwise as compiling does, also when asked again.
        """
        places = self._places
        names = tuple(sorted((name for name in given if name in places), key=places.__getitem__))
        if not names:
            return None
        if self.compile_with is None:
            text = f"{', '.join(names)}: the value was compiled in, and a package has no model to compile with another"
            raise CallError(1701, text, where=names[0], hint="compile the model itself: `tilework.compile`")
        with self._lock:
            found = self._found.get(names)
            if found is None:
                try:
                    found = self.compile_with(names)
                except TileworkError as error:
                    found = error
                self._found[names] = found
                while len(self._found) > KEPT:
                    self._found.popitem(last=False)
            self._found.move_to_end(names)
        if isinstance(found, TileworkError):
            raise found
        return found

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
