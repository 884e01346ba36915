"""Other engines on the command line: which are meant, which file they open, and what becomes of one that fails."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilework.cli.exit_codes import DIFFERENT, NO_PEER
from tilework.cli.failures import say
from tilework.cli.subject import is_package
from tilework.errors import UsageError
from tilework.peers.engine import peer_names

if TYPE_CHECKING:
    from tilework.peers.check import Checked

NONE = "none"
HINT = " (rounding grows where random inputs make no sense to a model: give real ones by --input)"
ONNX_OPTION = click.option(
    "--onnx", type=click.Path(path_type=Path), default=None, metavar="FILE.onnx",
    help="What other engines open, where MODEL is a package.",
)  # fmt: skip


def chosen(text: str, option: str) -> tuple[str, ...]:
    """The engines of `onnxruntime,openvino`, each once; none for `none`. Raises `UsageError` 1001 for other names."""
    names = [part.strip() for part in text.split(",")]
    known = peer_names()
    for name in names:
        if name not in known and names != [NONE]:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}, or {NONE}"
            raise UsageError(1001, f"{option} {text}: there is no engine {name!r} here", where=option, hint=hint)
    return tuple(dict.fromkeys(names)) if names != [NONE] else ()


def file_for_peers(model: Path, onnx: Path | None, peers: tuple[str, ...]) -> Path | None:
    """The file that peers open; None where there are no peers. Raises `UsageError` 1002 for none, or one too many."""
    if not peers:
        if onnx is not None:
            raise UsageError(1002, "--onnx: no other engine opens it", where="--onnx", hint="leave it out")
        return None
    if not is_package(model):
        if onnx is not None:
            text = f"--onnx: other engines open {model} itself"
            raise UsageError(1002, text, where="--onnx", hint="leave it out")
        return model
    if onnx is None:
        text = f"{peers[0]} cannot open {model}: it is a package of Tilework"
        raise UsageError(1002, text, where="MODEL", hint="give the model that it was made from: --onnx FILE.onnx")
    if not onnx.is_file():
        raise UsageError(1002, f"--onnx {onnx}: there is no such file", where="--onnx")
    return onnx


def end_with(others: Sequence[Checked], random: Sequence[str], *, asked: bool = True) -> None:
    """Say which engines are missing or differ, and end the command with the exit code for it. Engines that nobody asked
    for (`asked` is false) may be missing. `random`: the inputs that nobody gave.
    """
    for other in others:
        if other.skipped:
            say(f"{'' if asked else 'note: '}{other.name} is left out: {other.skipped}")
        elif not other.equal:
            say(f"the outputs differ from those of {other.name}{HINT if random else ''}")
    if any(not other.skipped and not other.equal for other in others):
        click.get_current_context().exit(DIFFERENT)
    if asked and any(other.skipped for other in others):
        click.get_current_context().exit(NO_PEER)
