"""Options that several commands share, each with one meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from tilework.errors import UsageError
from tilework.machine.finder import names

Command = TypeVar("Command", bound=Callable[..., Any])


def refuse(*names: str, why: str) -> None:
    """Raise `UsageError` 1002 where one of these options of the current command was given."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            text = f"{option.opts[0]} cannot be given: {why}"
            raise UsageError(1002, text, where=option.opts[0], hint="leave it out")


def model(command: Command) -> Command:
    """MODEL: the path of an ONNX file (or, where a command says so, of a package)."""
    return click.argument("model", type=click.Path(path_type=Path))(command)


def shape(command: Command) -> Command:
    """`--shape NAME=1x3x320x320`, for each input that is to be fixed."""
    text = "Fix an input's shape (repeatable)."
    return click.option("--shape", "fixed", multiple=True, metavar="NAME=1x3x320x320", help=text)(command)


def inputs(command: Command) -> Command:
    """`--input NAME=FILE.npy`, for each input that is not to be random, and `--seed` for the rest."""
    text = "An input's array (repeatable); random without it."
    command = click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs.")(command)
    return click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help=text)(command)


def check_seed(seed: int) -> None:
    """Raise `UsageError` 1002 for a seed that numpy does not take."""
    if seed < 0:
        raise UsageError(1002, f"--seed {seed}: it must not be negative", where="--seed")


def threads(command: Command) -> Command:
    """`--threads N`."""
    text = "Threads to use (default: what this process may use)."
    return click.option("--threads", type=int, default=None, metavar="N", help=text)(command)


def machine(command: Command) -> Command:
    """`--machine NAME`; the environment's or the host without it."""
    text = f"Machine to compile for: {', '.join(names())} (default: TILEWORK_MACHINE, else host)."
    return click.option("--machine", default=None, metavar="NAME", help=text)(command)


def numerics(command: Command) -> Command:
    """`--numerics LEVEL`."""
    return click.option(
        "--numerics", type=click.Choice(["strict", "default", "fast"]), default="default", show_default=True,
        help="What may be done to values.",
    )(command)  # fmt: skip


def reports(command: Command) -> Command:
    """`--report OUT.html` and `--trace OUT.json`."""
    path = click.Path(path_type=Path)
    page = "Write a page: roofline, time by region, memory, schedules, compile time."
    events = "Write the calls, step by step, as a trace for Perfetto (ui.perfetto.dev)."
    command = click.option("--trace", type=path, default=None, metavar="OUT.json", help=events)(command)
    return click.option("--report", type=path, default=None, metavar="OUT.html", help=page)(command)


def as_json(command: Command) -> Command:
    """`--json`: the command's answer, or its error, as one JSON object on standard output."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for errors too.")(command)
