"""One compilation in a process of its own (a fork), which writes down what it did, line by line, as far as it came."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from benchmarks.key_pairs.building import Drawn
from benchmarks.key_pairs.compiling import Recorder, results_of
from tilework.codegen.cpu.objects import CompileTarget
from tilework.compiler.options import CompileOptions
from tilework.errors import TileworkError
from tilework.fast_dataclass import dataclass

What = Literal["made", "model", "right", "wrong", "coded", "uncoded"]
MAKERS: Mapping[str, Callable[[Drawn], Any]] = {
    "product": lambda d: d.product(),
    "tanh": lambda d: d.elementwise("Tanh"),
    "softmax": lambda d: d.elementwise("Softmax", axis=1),
    "difference": lambda d: d.binary("Sub"),
    "window": lambda d: d.pooling(kernel_shape=[2, 2]),
    "sigmoid": lambda d: d.elementwise("Sigmoid", extents=["batch", d.n]),
}
"""Small models, each with kernels of its own."""


@dataclass(frozen=True)
class Line:
    """One thing that a process did: it made and kept the code of a key, or all of a model; its result was right or
    wrong; or it failed.
    """

    process: int
    model: str
    what: What
    key: str = ""


class Journal:
    """A folder with a file for each process; a line is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        """The folder is made where there is none, and emptied."""
        self.path = path
        path.mkdir(exist_ok=True)
        for old in path.iterdir():
            old.unlink()

    def add(self, model: str, what: What, key: str = "") -> None:
        """Write a line down."""
        line = json.dumps([os.getpid(), model, what, key]) + "\n"
        descriptor = os.open(self.path / str(os.getpid()), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def lines(self) -> list[Line]:
        """All of them."""
        found = [line for path in sorted(self.path.iterdir()) for line in path.read_text().splitlines()]
        return [Line(*json.loads(line)) for line in found]


class _Noting(Recorder):
    """Objects of a store; those that this process made and kept are written down once they are kept."""

    journal: Journal
    model: str

    def object_of(self, text: str, target: CompileTarget, make: Callable[[], bytes]) -> bytes:
        made = False

        def making() -> bytes:
            nonlocal made
            made = True
            return make()

        found = super().object_of(text, target, making)
        if made:
            self.journal.add(self.model, "made", self.key(text, target).digest)
        return found


def compile_once(name: str, path: Path, expected: str, journal: Journal) -> None:
    """Compile a model in the cache that the environment names, call it, and write down what came of it."""
    from tilework.frontends.compile import compile as compile_model
    from tilework.runtime.context import Context

    try:
        context = Context()
        recorder: _Noting | None = None
        if context.objects is not None:
            recorder = _Noting(context.objects)
            recorder.journal, recorder.model = journal, name
            context.objects = recorder
        executable = compile_model(path, context=context)
        if recorder is not None and recorder.kernels:
            journal.add(name, "model", CompileOptions().numerics + name)
        journal.add(name, "right" if results_of(executable) == expected else "wrong")
    except TileworkError as error:
        journal.add(name, "coded", str(error).splitlines()[0])
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is counted
        journal.add(name, "uncoded", f"{type(error).__name__}: {error}")
        traceback.print_exc(file=sys.stderr)


def forked(name: str, path: Path, expected: str, journal: Journal, before: Callable[[], None] | None = None) -> int:
    """Do that in a child, and return its number at once. `before` is called in the child first."""
    child = os.fork()
    if child:
        return child
    try:
        if before is not None:
            before()
        compile_once(name, path, expected, journal)
    finally:
        os._exit(0)


def results_in_a_child(path: Path) -> str:
    """A digest of what a model computes, compiled without a cache in a child."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            from tilework.frontends.compile import compile as compile_model
            from tilework.runtime.context import Context

            os.environ["TILEWORK_CACHE"] = "off"
            os.write(writing, results_of(compile_model(path, context=Context())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    if not found:
        raise RuntimeError(f"{path} cannot be compiled")
    return found
