"""`tilework run`: compile a model and run it once."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
import numpy as np

from tilework.cli.parsing import input_files, random_inputs, shapes
from tilework.cli.writing import save_arrays, summary
from tilework.errors import UsageError


@click.command("run")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="An input's array; random without it.")
@click.option("--shape", "fixed", multiple=True, metavar="NAME=1x3x320x320", help="Fix an input's shape.")
@click.option("--threads", type=int, default=None, help="Threads to use (default: what this process may use).")
@click.option("--numerics", default="default", show_default=True, help="strict, default or fast.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")
@click.option("--save", type=click.Path(path_type=Path), default=None, metavar="OUT.npz", help="Write the outputs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    model: Path,
    inputs: tuple[str, ...],
    fixed: tuple[str, ...],
    threads: int | None,
    numerics: str,
    seed: int,
    save: Path | None,
    as_json: bool,
) -> None:
    """Compile MODEL (an ONNX file) and run it once."""
    from tilework.compiler.compile import compile_graph  # these pull in LLVM; `--help` should not wait for it
    from tilework.frontends.compile import load_graph, options
    from tilework.runtime.context import Context, ContextOptions

    if seed < 0:
        raise UsageError(1002, f"--seed {seed}: it must not be negative")
    given = input_files(inputs)
    graph = load_graph(model, shapes(fixed))
    unknown = set(given) - {value.name for value in graph.inputs}
    if unknown:
        names = ", ".join(value.name for value in graph.inputs)
        raise UsageError(1001, f"the model has no input {min(unknown)!r}", hint=f"its inputs are: {names}")
    with Context(ContextOptions(threads=threads)) as context:
        start = time.perf_counter()
        executable = compile_graph(graph, options(numerics, "host", False, None), context)
        compiled = time.perf_counter()
        arrays = random_inputs(graph, given, seed)
        results = executable(*(arrays[value.name] for value in graph.inputs))
        first = time.perf_counter()
        executable(*(arrays[value.name] for value in graph.inputs))
        again = time.perf_counter()
        named = dict(zip((output.name for output in executable.outputs), results, strict=True))
        if save is not None:
            save_arrays(save, named)
        times = {
            "compile_ms": (compiled - start) * 1e3, "first_call_ms": (first - compiled) * 1e3,
            "second_call_ms": (again - first) * 1e3,
        }  # fmt: skip
        random = [value.name for value in graph.inputs if value.name not in given]
        if as_json:
            entries = {
                name: {"dtype": str(array.dtype), "shape": list(array.shape), "nan": int(np.isnan(array).sum())
                       if array.dtype.kind == "f" else 0}
                for name, array in named.items()
            }  # fmt: skip
            click.echo(json.dumps({"outputs": entries, "random_inputs": random, **times}))
            return
        if random:
            click.echo(f"random inputs (seed {seed}): {', '.join(random)}")
        for name, array in named.items():
            click.echo(f"{name}: {summary(array)}")
        click.echo(
            ", ".join(f"{key.removesuffix('_ms').replace('_', ' ')} {value:.2f} ms" for key, value in times.items())
        )
