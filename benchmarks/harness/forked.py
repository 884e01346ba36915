"""Mutated models, each in a child forked from a process that has imported everything and made no context.

`python -m benchmarks.harness.forked CORPUS SEED FIRST COUNT` takes mutants FIRST, FIRST + 1, ... of a seed and prints
one JSON object a mutant: what its child came to. A corpus is a file of pickled models (`corpus` makes it).
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np

from benchmarks.harness.mutations import mutated

SECONDS = 10
"""Processor time that a child may take, in seconds: the machine may be busy with other things."""
WAIT = 120.0
"""Seconds after which a child that takes no processor time hangs, too."""
INTERRUPTED_AFTER = 4.0
"""Seconds after which a child whose model runs is interrupted, as a user would: loops may ask for 2^62 trips."""
RUNS_AT_LEAST = 0.5
"""Seconds that a model has run before that, however long it took to compile it."""
MEMORY = 16 << 30
"""Addresses that a child may have, in bytes."""
CHECKED = 0.02
"""Share of mutants that ONNX's checker is asked about where they are damaged, as `tilework.compile` does."""
LARGEST_INPUT = 1 << 20
"""Elements of an input beyond which a model is compiled and not run."""
LARGEST_MODEL = 1 << 16
"""Bytes of the models that are mutated."""


def corpus(place: Path) -> int:
    """Write the models of ONNX's own tests that are small; how many."""
    from onnx.backend.test.loader import load_model_tests

    found: dict[bytes, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("node", "simple", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                stored = Path(case.model_dir or "") / "model.onnx"
                content = case.model.SerializeToString() if case.model is not None else stored.read_bytes()
                if len(content) <= LARGEST_MODEL:
                    found[content] = None
    place.write_bytes(pickle.dumps(list(found)))
    return len(found)


def attempt(content: bytes, random: np.random.Generator, say: Any) -> str:
    """Compile a model and run it once; what came of it. Errors that have no code are raised."""
    from tilework.compiler.options import CompileOptions
    from tilework.errors import TileworkError
    from tilework.frontends.onnx.compiled import compile_model

    try:
        # ONNX's own checker, in a process of its own, takes longer than all the rest: it is asked now and then
        executable = compile_model(
            content, None, CompileOptions(), None, "auto" if random.random() < CHECKED else "own"
        )
        given = [_argument(port.type, random) for port in executable.inputs]
        if any(array is None for array in given):
            return "compiled"
        return run(lambda: executable(*given), lambda: say("runs"))
    except TileworkError as error:
        return f"TW{error.code}"


def run(call: Callable[[], object], say: Callable[[], None]) -> str:
    """Whether a call ran, or was interrupted once that was said. A call that takes no interrupt does not return; an
    interrupt that comes when the call is over is none of its faults, and nothing comes of it.
    """
    waiting = True

    def take(_number: int, _frame: FrameType | None) -> None:
        if waiting:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, take)
    try:
        say()
        call()
        waiting = False
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        waiting = False
    return "ran"


def _argument(kind: Any, random: np.random.Generator) -> Any:
    """An array of some type, free dimensions drawn; None for one that is too large, an empty list for no tensor."""
    if not hasattr(kind, "shape"):
        return []
    shape = tuple(e.constant if e.is_constant else int(random.integers(0, 5)) for e in kind.shape)
    if any(extent > LARGEST_INPUT for extent in shape) or np.prod(shape, dtype=np.float64) > LARGEST_INPUT:
        return None
    if kind.dtype.kind in ("signed", "unsigned"):
        low = -3 if kind.dtype.kind == "signed" else 0
        return random.integers(low, 4, shape).astype(np.int8).astype(kind.dtype.numpy)
    if kind.dtype.kind == "boolean":
        return random.integers(0, 2, shape).astype(bool)
    if kind.dtype.kind in ("floating", "complex"):
        drawn = random.standard_normal(shape)
        drawn[random.random(shape) < 0.05] = np.nan
        return drawn.astype(np.float32).astype(kind.dtype.numpy)
    return np.full(shape, "word", object)


def child(content: bytes, number: int, out: int) -> None:
    """What the forked process does; never returns."""
    answer: dict[str, Any] = {"outcome": "uncoded", "why": "left without a word"}

    def say(stage: str) -> None:
        os.write(out, f"{stage}\n".encode())

    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        answer = {"outcome": attempt(content, np.random.default_rng(number), say)}
    except BaseException as error:  # noqa: BLE001 - anything without a code is what is looked for
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        answer = {"outcome": "uncoded", "why": f"{type(error).__name__}: {str(error)[:200]} ({where})"}
    finally:
        with contextlib.suppress(OSError):
            os.write(out, (json.dumps(answer) + "\n").encode())
        os._exit(0)


def one(content: bytes, number: int) -> dict[str, Any]:
    """The outcome of a mutant: `abort` with the signal, `hang`, or what the child told."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = os.fork()
        if process == 0:
            os.close(read)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            child(content, number, write)
        os.close(write)
        told, since = b"", float("inf")
        interrupted = False
        while True:
            ready, _, _ = select.select([read], [], [], 0.2)
            if ready:
                more = os.read(read, 65536)
                if not more:
                    break
                told += more
            waited = time.monotonic() - start
            if waited > WAIT:
                os.kill(process, signal.SIGKILL)
                break
            if told == b"runs\n":
                since = min(since, waited)
            ripe = waited > max(INTERRUPTED_AFTER, since + RUNS_AT_LEAST)
            if ripe and told == b"runs\n" and not interrupted:
                os.kill(process, signal.SIGINT)
                interrupted = True
        os.close(read)
        _, status = os.waitpid(process, 0)
        lines = [line for line in told.decode(errors="replace").splitlines() if line.startswith("{")]
        if lines:
            return json.loads(lines[-1])
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            stage = "while it runs" if told else "while it is compiled"
            return {"outcome": "hang", "why": f"longer than {SECONDS} s {stage}"}
        said.seek(0)
        words = said.read().decode(errors="replace").strip()[-200:]
        ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        return {"outcome": "abort", "why": f"{ended} {words}"}


def prepare() -> None:
    """Import what a compilation and a run need, so that children need not."""
    from tilework.frontends.onnx.converters import converters

    for name in ("onnx", "onnx.defs", "tilework.compiler.compile", "tilework.frontends.onnx.compiled"):
        importlib.import_module(name)
    converters()


def main() -> None:
    """Mutants one after another, each told as one line."""
    place, seed, first, count = sys.argv[1], *map(int, sys.argv[2:5])
    models: list[bytes] = pickle.loads(Path(place).read_bytes())
    prepare()
    for number in range(first, first + count):
        content = mutated(models, Random(f"{seed}:{number}"))
        answer = one(content, number)
        answer["number"] = number
        if answer["outcome"] in ("abort", "hang", "uncoded"):
            answer["model"] = base64.b64encode(content).decode()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
