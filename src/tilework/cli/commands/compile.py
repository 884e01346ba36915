"""`tilework compile`: print a stage of a compilation, or write it or a package to a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tilework.cli import options
from tilework.cli.parsing import shapes
from tilework.cli.progress import working
from tilework.cli.sizes import in_words
from tilework.cli.subject import PACKAGE_SUFFIX
from tilework.cli.writing import check_folder, save_bytes
from tilework.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilework.compiler.compile import Compiled
    from tilework.numerics import Level

OBJECT = "object"


@click.command("compile")
@options.model
@click.option(
    "--emit", type=click.Choice(["graph", "loops", "llvm", "asm", OBJECT, "plan"]), default="plan", show_default=True,
    help="The stage to print.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None, metavar="FILE",
    help="Write a package that `tilework run` and `tilework.load` take; with --emit, write the stage there instead.",
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

    Nothing is run, so any machine will do for a stage; a package is written for machines whose code runs here.
    """
    given = shapes(fixed)
    asked = click.get_current_context().get_parameter_source("emit") is not ParameterSource.DEFAULT
    if output is not None:
        check_folder(output)
        if not asked:
            _write_package(model, output, given, machine, numerics)
            _tell_written(output, as_json)
            return
        if output.suffix == PACKAGE_SUFFIX:
            text = f"--emit {emit} -o {output}: a name that ends in {PACKAGE_SUFFIX} is for a package"
            raise UsageError(1002, text, where="--emit", hint="leave --emit out, or choose another name")
    elif emit == OBJECT:
        _refuse_reader(as_json)
    with working(f"compiling {model}"):
        from tilework.frontends.compile import lower  # pulls in LLVM; `--help` should not wait for it

        done = lower(model, shapes=given, numerics=numerics, machine=machine)
        content = object_bytes(done) if emit == OBJECT else b""
        parts = stage(done, emit) if emit != OBJECT else []
    if output is not None:
        save_bytes(output, content if emit == OBJECT else _text(parts, emit).encode())
        _tell_written(output, as_json)
    elif emit == OBJECT:
        click.echo(content, nl=False)
    elif as_json:
        facts = {"emit": emit, "machine": done.explanation.machine, "numerics": done.explanation.numerics}
        click.echo(json.dumps({**facts, "parts": [{"name": name, "text": text} for name, text in parts]}))
    else:
        click.echo(_text(parts, emit), nl=False)


def _refuse_reader(as_json: bool) -> None:
    """Raise `UsageError` 1002 where object code would go to a person, or into JSON."""
    what = "JSON cannot hold object code" if as_json else "object code is not for a terminal"
    closed = sys.stdout is None  # pyright: ignore[reportUnnecessaryComparison] - it is None where it was closed
    if as_json or (not closed and sys.stdout.isatty()):
        raise UsageError(1002, what, where="--emit", hint="give a file (-o FILE.o), or send the output to one")


def _write_package(
    model: Path, output: Path, fixed: Mapping[str, tuple[int, ...]], machine: str | None, numerics: Level
) -> None:
    with working(f"compiling {model}"):
        from tilework.frontends.compile import compile as compile_model

        compile_model(model, shapes=fixed, numerics=numerics, machine=machine).save(output)


def _tell_written(output: Path, as_json: bool) -> None:
    size = output.stat().st_size
    click.echo(json.dumps({"file": str(output), "bytes": size}) if as_json else f"{output}: {in_words(size)}")


def _text(parts: list[tuple[str, str]], emit: str) -> str:
    """The parts of a stage one after another."""
    return "".join(f"# {name}\n{text}\n" if emit == "loops" else f"{text}\n" for name, text in parts)


def object_bytes(done: Compiled) -> bytes:
    """All kernels and the plan's driver as one relocatable object."""
    from tilework.codegen.cpu.llvm import compile_object
    from tilework.codegen.cpu.modules import joined_text
    from tilework.machine.finder import machine

    return compile_object(joined_text(done.llvm), machine(done.explanation.machine))


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
