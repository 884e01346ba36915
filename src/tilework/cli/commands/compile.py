"""`tilework compile`: print a stage of a compilation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilework.cli import options
from tilework.cli.parsing import shapes
from tilework.cli.progress import working
from tilework.cli.sizes import in_words
from tilework.cli.writing import check_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilework.compiler.compile import Compiled
    from tilework.numerics import Level


@click.command("compile")
@options.model
@click.option(
    "--emit", type=click.Choice(["graph", "loops", "llvm", "asm", "plan"]), default="plan", show_default=True,
    help="The stage to print.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None, metavar="FILE.tilework",
    help="Write a package that `tilework run` and `tilework.load` take, instead of printing a stage.",
)  # fmt: skip
@options.shape
@options.machine
@options.numerics
@options.as_json
def command(
    model: Path, emit: str, output: Path | None, fixed: tuple[str, ...], machine: str | None, numerics: Level,
    as_json: bool,
) -> None:  # fmt: skip
    """Compile MODEL (an ONNX file) and print one stage of it, or write it to a file.

    Nothing is run, so any machine will do for a stage; a file is written for machines whose code this processor runs.
    """
    given = shapes(fixed)
    if output is not None:
        options.refuse("emit", why="a file is written instead of a stage")
        _write(model, output, given, machine, numerics, as_json)
        return
    with working(f"compiling {model}"):
        from tilework.frontends.compile import lower  # pulls in LLVM; `--help` should not wait for it

        done = lower(model, shapes=given, numerics=numerics, machine=machine)
        parts = stage(done, emit)
    if as_json:
        facts = {"emit": emit, "machine": done.explanation.machine, "numerics": done.explanation.numerics}
        click.echo(json.dumps({**facts, "parts": [{"name": name, "text": text} for name, text in parts]}))
        return
    for name, text in parts:
        if emit == "loops":
            click.echo(f"# {name}")
        click.echo(text)


def _write(
    model: Path, output: Path, fixed: Mapping[str, tuple[int, ...]], machine: str | None, numerics: Level, as_json: bool
) -> None:
    check_folder(output)
    with working(f"compiling {model}"):
        from tilework.frontends.compile import compile as compile_model

        done = compile_model(model, shapes=fixed, numerics=numerics, machine=machine)
        done.save(output)
    size = output.stat().st_size
    click.echo(json.dumps({"file": str(output), "bytes": size}) if as_json else f"{output}: {in_words(size)}")


def stage(done: Compiled, emit: str) -> list[tuple[str, str]]:
    """The named texts of one stage: one a kernel for `loops`, one a module for `llvm` and `asm`."""
    from tilework.codegen.cpu.llvm import emit_assembly
    from tilework.graph.text import to_text
    from tilework.loops.text import program_text
    from tilework.machine.finder import machine
    from tilework.plan.text import plan_text

    match emit:
        case "graph":
            return [(done.graph.name, to_text(done.graph))]
        case "loops":
            return [
                (f"{kernel.region.name}: {', '.join(kernel.region.operators)}", program_text(kernel.program))
                for kernel in done.kernels
            ]
        case "llvm":
            return [(f"module {number}", text) for number, text in enumerate(done.llvm)]
        case "asm":
            target = machine(done.explanation.machine)
            return [(f"module {number}", emit_assembly(text, target)) for number, text in enumerate(done.llvm)]
        case _:
            return [(done.plan.name, plan_text(done.plan))]
