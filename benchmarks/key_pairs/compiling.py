"""What a compilation takes out of a cache and puts into it: the kernels' objects and the model that it used.

As a program (`python -m benchmarks.key_pairs.compiling MODEL`) it tells that of a process of its own, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilework
from tilework.codegen.cpu.objects import CompileTarget
from tilework.fast_dataclass import dataclass
from tilework.runtime.context import Context, ContextOptions
from tilework.runtime.kept_models import KIND
from tilework.runtime.kept_objects import KeptObjects

FREE = 7
"""What a free extent is in a call."""
KERNEL = re.compile(r"^define i32 @tilework_[0-9a-f]{12}\(", re.MULTILINE)


@dataclass(frozen=True)
class Used:
    """Digests of the entries that a compilation looked for or made: objects with a kernel in them, and whole models
    that it made. `written` are those that were not there before. `results` is a digest of what the model computes.
    """

    kernels: frozenset[str]
    written: frozenset[str]
    models: frozenset[str]
    found_model: bool
    results: str


class Recorder(KeptObjects):
    """Objects of a store, and the keys that were asked for."""

    def __init__(self, kept: KeptObjects) -> None:
        """Uses the same store."""
        super().__init__(kept.store)
        self.kernels: set[str] = set()
        self.made: set[str] = set()

    def object_of(self, text: str, target: CompileTarget, make: Callable[[], bytes]) -> bytes:
        """As `KeptObjects.object_of`; notes the key of a text with a kernel in it, and whether it was made."""
        if not KERNEL.search(text):
            return super().object_of(text, target, make)
        digest = self.key(text, target).digest
        self.kernels.add(digest)

        def making() -> bytes:
            self.made.add(digest)
            return make()

        return super().object_of(text, target, making)


def recorded(options: ContextOptions | None = None) -> tuple[Context, Recorder]:
    """A context on the cache that the environment names, and the recorder in it."""
    context = Context(options)
    if context.objects is None:
        raise RuntimeError("the cache is off")
    context.objects = recorder = Recorder(context.objects)
    return context, recorder


def models_in(recorder: Recorder) -> set[str]:
    """Digests of the whole models in a store."""
    store = recorder.store
    found = (store.read(kept.path) for kept in store.entries())
    return {entry.key.digest for entry in found if entry.key.kind == KIND}


def used_by(source: Any, options: ContextOptions | None = None, calls: int = 1, **settings: Any) -> Used:
    """Compile and call a model, and say what of the cache that took."""
    context, recorder = recorded(options)
    try:
        before = models_in(recorder)
        executable = tilework.compile(source, context=context, **settings)
        digest = results_of(executable) if calls else ""
        models = models_in(recorder) - before
        found = bool(before) and not models and not recorder.kernels
        return Used(frozenset(recorder.kernels), frozenset(recorder.made), frozenset(models), found, digest)
    finally:
        context.close()


def results_of(executable: Any) -> str:
    """A digest of what a model gives for inputs drawn from a fixed seed; free extents are `FREE`."""
    random = np.random.default_rng(5)
    given: dict[str, Any] = {}
    for port in executable.inputs:
        shape = [extent.constant if extent.is_constant else FREE for extent in port.type.shape]
        given[port.name] = random.integers(1, 4, shape).astype(port.type.dtype.numpy)
    found = executable(*given.values())
    arrays = found if isinstance(found, (tuple, list)) else [found]
    state = hashlib.sha256()
    for array in arrays:
        state.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def main() -> None:
    """Tell what compiling a file took, and with which sources."""
    used = used_by(Path(sys.argv[1]))
    print(json.dumps({
        "kernels": sorted(used.kernels), "written": sorted(used.written), "models": sorted(used.models),
        "found model": used.found_model, "results": used.results, "package": str(Path(tilework.__file__).parent),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
