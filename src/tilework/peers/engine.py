"""What an engine is: a library that opens a model and runs it. Everything here happens in the engine's own process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilework.fast_dataclass import dataclass, field
from tilework.variants import find_variant, list_variants

ENGINES = "tilework.peers.engines"
OURS = "tilework"


@dataclass(frozen=True)
class Task:
    """What an engine is to open. `inputs` are the arrays of every call, by name, in the model's order.

    `shapes` fixes inputs when the model is compiled; `package` says that `model` is a `.tilework` file.
    """

    model: str
    inputs: Mapping[str, Any]
    threads: int
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    numerics: str = "default"
    machine: str | None = None
    package: bool = False


@dataclass(frozen=True)
class Opened:
    """A model that is ready to be called. `call` returns the outputs in the model's order; `names` are theirs, known
    after the first call.
    """

    call: Callable[[], Sequence[Any]]
    names: Callable[[], Sequence[str]]
    facts: Callable[[], Mapping[str, Any]] = dict
    """What else is worth saying, as JSON can hold it."""


@dataclass(frozen=True)
class Engine:
    """One engine: the module it needs, what imports that and all it will need for a task, and what opens a model.

    `suffix` is that of the files it opens. `load` returns the library's version; it raises `ModuleNotFoundError` where
    it is not installed.
    """

    module: str
    load: Callable[[Task], str]
    open: Callable[[Task], Opened]
    suffix: str = ".onnx"


def peer_names() -> tuple[str, ...]:
    """The engines that Tilework can be compared with."""
    return tuple(name for name in list_variants(ENGINES) if name != OURS)


def engine_named(name: str) -> Engine:
    """The engine of that name; raises `UsageError` 1001 where there is none."""
    found = find_variant(ENGINES, name, "ENGINE")
    assert isinstance(found, Engine)
    return found
