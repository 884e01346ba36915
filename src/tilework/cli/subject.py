"""The model that a command is given: an ONNX file to compile, or a package to load; and the arguments of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilework.cli import options
from tilework.cli.parsing import Takes, input_files, named_path, random_inputs
from tilework.errors import FrontendError
from tilework.fast_dataclass import dataclass
from tilework.variants import find_variant

if TYPE_CHECKING:
    import numpy as np

    from tilework.dims import Symbol
    from tilework.numerics import Level
    from tilework.runtime.context import Context
    from tilework.runtime.executable import Executable
    from tilework.runtime.per_shape import PerShape
    from tilework.runtime.ports import Port

    Compiled: TypeAlias = "Executable | PerShape"

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


def import_for(package: bool) -> None:
    """Import what opens a model, so that no clock measures that."""
    find_variant("tilework.runtime", "package", "load")
    if not package:
        find_variant("tilework.frontends", "compile", "compile")
        find_variant("tilework.frontends.onnx", "kept", "compile_kept")


def opened(
    model: Path, fixed: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None, memory_limit: int | None,
    context: Context,
) -> Compiled:  # fmt: skip
    """The executable: a package loaded, an ONNX file compiled (or found as it was compiled before)."""
    if is_package(model):
        from tilework.runtime.package import load

        return load(model, context=context, memory_limit=memory_limit)
    from tilework.frontends.compile import compile as compile_model

    return compile_model(
        model, shapes=fixed, numerics=numerics, machine=machine, memory_limit=memory_limit, context=context
    )


def takes_of(executable: Compiled) -> Takes:
    """What an executable takes."""
    from tilework.runtime.boxed import BoxedExecutable
    from tilework.runtime.executable import Executable

    plans = executable.plans if isinstance(executable, BoxedExecutable) else ()
    if isinstance(executable, Executable) and not isinstance(executable, BoxedExecutable):
        plans = (executable.plan,)
    return Declared(executable.inputs, plans[0].symbols if plans else ())


def with_overridden(executable: Compiled, paths: Sequence[tuple[str, ...]]) -> Compiled:
    """What takes the initialisers that `input_paths` gives as inputs too: the executable itself where it gives none."""
    overriding = executable.overriding
    if overriding is None:
        return executable
    names = {port.name for port in (*executable.inputs, *overriding.ports)}
    found = overriding.serving({named_path(parts, names)[0]: None for parts in paths})
    return executable if found is None else found


def declared(
    model: Path, fixed: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None
) -> Takes:  # fmt: skip
    """What a model takes, nothing of it being compiled where that can be avoided."""
    from tilework.frontends.compile import load_graph
    from tilework.runtime.context import Context

    if not is_package(model):
        try:
            return load_graph(model, fixed)
        except FrontendError as error:  # what it computes may depend on what a call brings
            if not error.decided_by:
                raise
    with Context() as context:
        return takes_of(opened(model, fixed, numerics, machine, None, context))


def arguments(
    takes: Takes, paths: Sequence[tuple[str, ...]], seed: int
) -> tuple[dict[str, np.ndarray[Any, Any]], list[str]]:
    """The arguments of a call by name, in the model's order, and the names of those that are random."""
    given = input_files(paths, takes)
    return random_inputs(takes, given, seed), [value.name for value in takes.inputs if value.name not in given]
