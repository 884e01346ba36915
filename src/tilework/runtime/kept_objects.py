"""Objects kept on disk: the same text for the same processor by the same LLVM is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from tilework import environment
from tilework.cache.folder import absolute, usual_place
from tilework.cache.keys import Key, key_of
from tilework.cache.store import Store
from tilework.codegen.cpu.objects import CompileTarget

LIMIT = 1 << 30
"""Bytes that are kept where nothing else is said."""
_GENERATION = "level 3, PIC, small code model, no passes"
"""How text becomes an object; see `codegen.cpu.llvm.compile_object`."""
SECTION = "object"


class KeptObjects:
    """The objects of a store. (The type of `codegen.cpu.jit.ObjectStore`.)"""

    def __init__(self, store: Store) -> None:
        self.store = store

    def object_of(self, text: str, target: CompileTarget, make: Callable[[], bytes]) -> bytes:
        """The object of LLVM text for a target: one that was kept, or what `make` gives, which is kept."""
        found = self.store.get_or_make(self.key(text, target), lambda: {SECTION: make()})
        return found[SECTION] if SECTION in found else make()

    def key(self, text: str, target: CompileTarget) -> Key:
        """What decides an object."""
        parts = {
            "text": text + "\n",
            "triple": target.triple,
            "cpu": target.cpu,
            "features": target.features,
            "llvm": self._llvm,
            "generation": _GENERATION,
        }
        return key_of("object", parts)

    @cached_property
    def _llvm(self) -> str:
        from llvmlite import __version__

        return f"llvmlite {__version__}"  # each has one LLVM in it


def kept_objects() -> KeptObjects | None:
    """The objects that the settings of the environment keep; None where `TILEWORK_CACHE` is off.

    Raises `UsageError` 1002 for settings that make no sense.
    """
    if environment.read(environment.CACHE) is False:
        return None
    place = environment.read(environment.CACHE_DIR)
    limit = environment.read(environment.CACHE_LIMIT)
    folder = absolute(place) if place is not None else usual_place()
    return KeptObjects(Store(folder, limit if limit is not None else LIMIT))
