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
from tilework.peers.engine import engine_named, peer_names

if TYPE_CHECKING:
    from tilework.peers.check import Checked

NONE = "none"
HINT = " (rounding grows where random inputs make no sense to a model: give real ones by --input)"
ONNX_OPTION = click.option(
    "--onnx", type=click.Path(path_type=Path), default=None, metavar="FILE.onnx",
    help="What other engines open, where MODEL is a package.",
)  # fmt: skip
TORCH_OPTION = click.option(
    "--torch", type=click.Path(path_type=Path), default=None, metavar="FILE.pt2",
    help="What torch opens: the same model by torch.export.save (default: MODEL's name with .pt2).",
)  # fmt: skip
EXPORTED = ".pt2"


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


def files_for_peers(model: Path, onnx: Path | None, torch: Path | None, peers: tuple[str, ...]) -> dict[str, Path]:
    """The file that each peer opens. Raises `UsageError` 1002 for one that is not there, or that nobody opens."""
    exported = tuple(name for name in peers if engine_named(name).suffix == EXPORTED)
    others = tuple(name for name in peers if name not in exported)
    if torch is not None and not exported:
        raise UsageError(1002, "--torch: no other engine opens it", where="--torch", hint="leave it out")
    if onnx is not None and not others:
        raise UsageError(1002, "--onnx: no other engine opens it", where="--onnx", hint="leave it out")
    found = {name: _onnx_file(model, onnx, name) for name in others}
    return {**found, **{name: _exported_file(model, torch, name) for name in exported}}


def _onnx_file(model: Path, onnx: Path | None, peer: str) -> Path:
    if not is_package(model):
        if onnx is not None:
            text = f"--onnx: other engines open {model} itself"
            raise UsageError(1002, text, where="--onnx", hint="leave it out")
        return model
    if onnx is None:
        text = f"{peer} cannot open {model}: it is a package of Tilework"
        raise UsageError(1002, text, where="MODEL", hint="give the model that it was made from: --onnx FILE.onnx")
    if not onnx.is_file():
        raise UsageError(1002, f"--onnx {onnx}: there is no such file", where="--onnx")
    return onnx


def _exported_file(model: Path, torch: Path | None, peer: str) -> Path:
    how = "in PyTorch, torch.export.save(torch.export.export(module, inputs), FILE) writes one"
    if torch is None:
        beside = model.with_suffix(EXPORTED)
        if not beside.is_file():
            text = f"{peer} cannot open {model}, and there is no {beside} beside it"
            raise UsageError(1002, text, where="MODEL", hint=f"give the same model: --torch FILE{EXPORTED}; {how}")
        return beside
    if torch.suffix != EXPORTED:
        text = f"--torch {torch}: only exported programs ({EXPORTED}) are opened"
        raise UsageError(1002, text, where="--torch", hint=how)
    if not torch.is_file():
        raise UsageError(1002, f"--torch {torch}: there is no such file", where="--torch", hint=how)
    return torch


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
