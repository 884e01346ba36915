"""`tilework run`: compile a model and run it twice, as the first call pays for memory and threads."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tilework.cli import options, reports
from tilework.cli.parsing import input_paths, shapes
from tilework.cli.peers import ONNX_OPTION, TORCH_OPTION, chosen, end_with, files_for_peers
from tilework.cli.progress import working
from tilework.cli.sizes import bytes_of
from tilework.cli.subject import (
    arguments,
    import_for,
    is_package,
    opened,
    refuse_compiling_options,
    takes_of,
    with_overridden,
)
from tilework.cli.writing import check_folder, save_arrays, summary
from tilework.graph.types import OpaqueType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilework.cli.subject import Compiled
    from tilework.numerics import Level
    from tilework.peers.check import Checked


@click.command("run")
@options.model
@options.inputs
@options.shape
@options.threads
@options.machine
@options.numerics
@click.option("--memory-limit", default=None, metavar="BYTES", help="Most memory that a call may take, e.g. 4G.")
@click.option(
    "--check", default=None, metavar="ENGINE[,ENGINE]",
    help="Compare the outputs with those of onnxruntime, openvino or torch.",
)  # fmt: skip
@ONNX_OPTION
@TORCH_OPTION
@click.option("--save", type=click.Path(path_type=Path), default=None, metavar="OUT.npz", help="Write the outputs.")
@options.reports
@options.as_json
def command(
    model: Path, inputs: tuple[str, ...], seed: int, fixed: tuple[str, ...], threads: int | None, machine: str | None,
    numerics: Level, memory_limit: str | None, check: str | None, onnx: Path | None, torch: Path | None,
    save: Path | None, report: Path | None, trace: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Compile MODEL (an ONNX file), run it, and say how long that took: compiling, the first call, a second one.

    A .tilework file is loaded instead of being compiled. Dimensions that neither --shape nor --input gives are 1.
    """
    options.check_seed(seed)
    paths, given_shapes = input_paths(inputs), shapes(fixed)
    limit = bytes_of(memory_limit, "--memory-limit") if memory_limit is not None else None
    if save is not None:
        check_folder(save)
    files = reports.wanted(report, trace)
    package = is_package(model)
    if package:
        refuse_compiling_options(model)
    peers = chosen(check, "--check") if check is not None else ()
    theirs = files_for_peers(model, onnx, torch, peers)
    with working("starting"):
        from tilework.peers.check import check_outputs
        from tilework.peers.engine import Task
        from tilework.runtime.context import Context, ContextOptions  # pulls in LLVM; `--help` should not wait for it

        settings = ContextOptions(threads=threads)
        import_for(package)
    verb, doing = ("load", "loading") if package else ("compile", "compiling")
    others: list[Checked] = []
    with Context(settings) as context:
        start = time.perf_counter()
        with working(f"{doing} {model}"):
            executable = with_overridden(opened(model, given_shapes, numerics, machine, limit, context), paths)
        compiled = time.perf_counter()
        arrays, random = arguments(takes_of(executable), paths, seed)
        given = tuple(arrays.values())
        called = time.perf_counter()
        with working(f"running {model}"):
            results = executable(*given)
            first = time.perf_counter()
            executable(*given)
            again = time.perf_counter()
        times = {
            f"{verb}_ms": (compiled - start) * 1e3, "first_call_ms": (first - called) * 1e3,
            "second_call_ms": (again - first) * 1e3,
        }  # fmt: skip
        named = dict(zip((output.name for output in executable.outputs), results, strict=True))
        if save is not None:
            save_arrays(save, named)
        for name in peers:
            with working(f"{name} runs {theirs[name]}"):
                task = Task(str(theirs[name]), arrays, context.pool.threads, given_shapes)
                others.append(check_outputs(name, task, named))
        if files.any:
            with working(f"profiling {model}"):
                profile = executable.profile(*given)
            reports.write(files, profile, model)
        if as_json:
            _print_json(executable, named, random, times, others, files)
        else:
            _print_text(named, random, seed, times)
            for line in (line for other in others for line in other.lines()):
                click.echo(line)
            files.tell()
    end_with(others, random)


def _print_json(
    executable: Compiled, named: Mapping[str, Any], random: Sequence[str], times: Mapping[str, float],
    others: Sequence[Checked], files: reports.Wanted,
) -> None:  # fmt: skip
    entries: dict[str, dict[str, Any]] = {}
    for output in executable.outputs:
        result, kind = named[output.name], output.type
        if isinstance(kind, OpaqueType):
            entries[output.name] = {"kind": kind.kind, "shape": list(np.shape(result))}
            continue
        nan = int(np.isnan(result).sum()) if kind.dtype.is_floating else 0
        entries[output.name] = {"dtype": str(result.dtype), "shape": list(result.shape), "nan": nan}
    facts: dict[str, Any] = {"machine": executable.explain().machine, "numerics": executable.explain().numerics}
    if others:
        facts["check"] = {other.name: other.as_json() for other in others}
    click.echo(json.dumps({"outputs": entries, "random_inputs": random, **facts, **times, **files.as_json()}))


def _print_text(named: Mapping[str, Any], random: Sequence[str], seed: int, times: Mapping[str, float]) -> None:
    if random:
        click.echo(f"random inputs (seed {seed}): {', '.join(random)}")
    for name, array in named.items():
        click.echo(f"{name}: {summary(np.asarray(array))}")
    click.echo(", ".join(f"{key.removesuffix('_ms').replace('_', ' ')} {value:.2f} ms" for key, value in times.items()))
