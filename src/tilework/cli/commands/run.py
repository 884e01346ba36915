"""`tilework run`: compile a model and run it twice, as the first call pays for memory and threads."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tilework.cli import options
from tilework.cli.parsing import input_files, input_paths, random_inputs, shapes
from tilework.cli.progress import working
from tilework.cli.writing import check_folder, save_arrays, summary
from tilework.errors import UsageError
from tilework.graph.types import OpaqueType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tilework.graph.graph import Graph
    from tilework.numerics import Level
    from tilework.plan.plan import Plan
    from tilework.runtime.context import Context
    from tilework.runtime.executable import Executable

SUFFIX = ".tilework"
"""How the name of a package ends."""


@click.command("run")
@options.model
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="An input's array (repeatable); random without it.",
)
@options.shape
@click.option("--threads", type=int, default=None, help="Threads to use (default: what this process may use).")
@options.machine
@options.numerics
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")
@click.option("--save", type=click.Path(path_type=Path), default=None, metavar="OUT.npz", help="Write the outputs.")
@options.as_json
def command(
    model: Path,
    inputs: tuple[str, ...],
    fixed: tuple[str, ...],
    threads: int | None,
    machine: str | None,
    numerics: Level,
    seed: int,
    save: Path | None,
    as_json: bool,
) -> None:
    """Compile MODEL (an ONNX file), run it, and say how long that took: compiling, the first call, a second one.

    A .tilework file is loaded instead of being compiled. Dimensions that neither --shape nor --input gives are 1.
    """
    if seed < 0:
        raise UsageError(1002, f"--seed {seed}: it must not be negative", where="--seed")
    paths, given_shapes = input_paths(inputs), shapes(fixed)
    if save is not None:
        check_folder(save)
    if model.suffix == SUFFIX:
        options.refuse("fixed", "machine", "numerics", why=f"{model} is compiled already")
    with working(f"reading {model}"):
        from tilework.runtime.context import Context, ContextOptions  # pulls in LLVM; `--help` should not wait for it

        settings = ContextOptions(threads=threads)
        make, graph = _packaged(model) if model.suffix == SUFFIX else _source(model, given_shapes, numerics, machine)
        prepared = _arguments(graph, paths, seed) if graph is not None else None
    with Context(settings) as context:
        start = time.perf_counter()
        with working(f"compiling {model}"):
            executable = make(context)
        compiled = time.perf_counter()
        arguments, random = prepared or _arguments(executable.plan, paths, seed)
        called = time.perf_counter()
        with working(f"running {model}"):
            results = executable(*arguments)
            first = time.perf_counter()
            executable(*arguments)
            again = time.perf_counter()
        times = {
            "compile_ms": (compiled - start) * 1e3, "first_call_ms": (first - called) * 1e3,
            "second_call_ms": (again - first) * 1e3,
        }  # fmt: skip
        named = dict(zip((output.name for output in executable.outputs), results, strict=True))
        if save is not None:
            save_arrays(save, named)
        if as_json:
            _print_json(executable, named, random, times)
        else:
            _print_text(named, random, seed, times)


def _arguments(
    of: Graph | Plan, paths: Sequence[tuple[str, ...]], seed: int
) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """The arguments of a call, and the names of those that are random."""
    given = input_files(paths, of)
    arrays = random_inputs(of, given, seed)
    return [arrays[value.name] for value in of.inputs], [v.name for v in of.inputs if v.name not in given]


def _source(
    model: Path, fixed: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None
) -> tuple[Callable[[Context], Executable], Graph]:
    """How an ONNX file is compiled, and its graph."""
    from tilework.compiler.compile import compile_graph
    from tilework.frontends.compile import black_boxes, load_graph
    from tilework.frontends.compile import options as compile_options

    chosen = compile_options(numerics, machine)
    graph = load_graph(model, fixed)
    return lambda context: compile_graph(graph, chosen, context, black_boxes(graph)), graph


def _packaged(model: Path) -> tuple[Callable[[Context], Executable], None]:
    """How a package is loaded; what it takes is known afterwards."""
    from tilework.runtime.package import load

    return lambda context: load(model, context=context), None


def _print_json(
    executable: Executable, named: Mapping[str, Any], random: Sequence[str], times: Mapping[str, float]
) -> None:
    entries: dict[str, dict[str, Any]] = {}
    for output in executable.outputs:
        result, kind = named[output.name], output.type
        if isinstance(kind, OpaqueType):
            entries[output.name] = {"kind": kind.kind, "shape": list(np.shape(result))}
            continue
        nan = int(np.isnan(result).sum()) if kind.dtype.is_floating else 0
        entries[output.name] = {"dtype": str(result.dtype), "shape": list(result.shape), "nan": nan}
    facts = {"machine": executable.explain().machine, "numerics": executable.explain().numerics}
    click.echo(json.dumps({"outputs": entries, "random_inputs": random, **facts, **times}))


def _print_text(named: Mapping[str, Any], random: Sequence[str], seed: int, times: Mapping[str, float]) -> None:
    if random:
        click.echo(f"random inputs (seed {seed}): {', '.join(random)}")
    for name, array in named.items():
        click.echo(f"{name}: {summary(np.asarray(array))}")
    click.echo(", ".join(f"{key.removesuffix('_ms').replace('_', ' ')} {value:.2f} ms" for key, value in times.items()))
