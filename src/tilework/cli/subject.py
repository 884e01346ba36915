"""The model that a command is given: an ONNX file to compile, or a package to load; and the arguments of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilework.cli import options
from tilework.cli.parsing import Takes, input_files, random_inputs
from tilework.errors import FrontendError
from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np

    from tilework.dims import Symbol
    from tilework.graph.graph import Graph
    from tilework.numerics import Level
    from tilework.runtime.boxed import BoxedExecutable
    from tilework.runtime.context import Context
    from tilework.runtime.executable import Executable
    from tilework.runtime.per_shape import PerShape
    from tilework.runtime.ports import Port

    Compiled: TypeAlias = "Executable | PerShape | BoxedExecutable"

PACKAGE_SUFFIX = ".tilework"
"""How the name of a package ends."""


def is_package(model: Path) -> bool:
    """Whether MODEL is a package by its name."""
    return model.suffix == PACKAGE_SUFFIX


def refuse_compiling_options(model: Path) -> None:
    """Raise `UsageError` 1002 where an option is given that says how a package is to be compiled."""
    options.refuse("fixed", "machine", "numerics", why=f"{model} is compiled already")


@dataclass(frozen=True)
class Declared:
    """What a model takes, as an executable or a file declares it."""

    inputs: Sequence[Port]
    symbols: Sequence[Symbol] = ()


@dataclass(frozen=True)
class Subject:
    """How the model becomes an executable (`make`), and what it takes, where that is known before."""

    make: Callable[[Context], Compiled]
    takes: Takes | None


def packaged(model: Path, memory_limit: int | None = None) -> Subject:
    """A package: what it takes is known once it is loaded."""
    from tilework.runtime.package import load

    return Subject(lambda context: load(model, context=context, memory_limit=memory_limit), None)


def source(
    model: Path, fixed: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None,
    memory_limit: int | None = None,
) -> Subject:  # fmt: skip
    """An ONNX file, read. One that is compiled for the values or shapes of each call is read when it is compiled."""
    from tilework.compiler.compile import compile_graph
    from tilework.frontends.compile import black_boxes
    from tilework.frontends.compile import compile as compile_model
    from tilework.frontends.compile import options as compile_options

    chosen = compile_options(numerics, machine, memory_limit=memory_limit)
    graph = _graph(model, fixed)
    if graph is not None:
        return Subject(lambda context: compile_graph(graph, chosen, context, black_boxes(graph)), graph)
    return Subject(
        lambda context: compile_model(
            model, shapes=fixed, numerics=numerics, machine=machine, memory_limit=memory_limit, context=context
        ),
        None,
    )


def _graph(model: Path, fixed: Mapping[str, tuple[int, ...]]) -> Graph | None:
    """The graph of a model; None where it depends on what a call brings. Raises `FrontendError`."""
    from tilework.frontends.compile import load_graph

    try:
        return load_graph(model, fixed)
    except FrontendError as error:
        if not error.decided_by:
            raise
        return None


def takes_of(executable: Compiled) -> Takes:
    """What an executable takes."""
    from tilework.runtime.executable import Executable

    return Declared(executable.inputs, executable.plan.symbols if isinstance(executable, Executable) else ())


def arguments(
    takes: Takes, paths: Sequence[tuple[str, ...]], seed: int
) -> tuple[dict[str, np.ndarray[Any, Any]], list[str]]:
    """The arguments of a call by name, in the model's order, and the names of those that are random."""
    given = input_files(paths, takes)
    return random_inputs(takes, given, seed), [value.name for value in takes.inputs if value.name not in given]
