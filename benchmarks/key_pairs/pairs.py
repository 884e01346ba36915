"""A pair of compilations, and what it takes to run one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Literal

from benchmarks.harness.models import ROOT
from benchmarks.key_pairs.building import Drawn
from benchmarks.key_pairs.compiling import Used, used_by
from tilework.fast_dataclass import dataclass

Wanted = Literal["shared", "apart"]
Level = Literal["kernel", "model"]


class Bench:
    """What a side of a pair may use: its drawn sizes and a folder of its own. The cache is the environment's."""

    def __init__(self, drawn: Drawn, folder: Path) -> None:
        """The folder is empty."""
        self.drawn = drawn
        self.folder = folder

    def file(self, model: Any, name: str = "model.onnx") -> Path:
        """A model written to the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString())
        return path

    def compiled(self, source: Any, options: Any = None, **settings: Any) -> Used:
        """A model compiled in this process."""
        return used_by(source, options, **settings)

    def elsewhere(self, path: Path, variables: Mapping[str, str] | None = None, *, package: Path | None = None,
                  folder: Path | None = None, processors: int | None = None) -> Used:  # fmt: skip
        """A file compiled in a process of its own: with other variables, sources, working folder, or on the first so
        many processors. Raises `RuntimeError` where that fails, or takes other sources.
        """
        searched = [str(package)] if package is not None else []
        inherited = os.environ.get("PYTHONPATH", "")
        searched += [str(ROOT), *([inherited] if inherited else [])]
        chosen = {**os.environ, "PYTHONPATH": os.pathsep.join(searched), **(variables or {})}
        keep = sorted(os.sched_getaffinity(0))[:processors] if processors is not None else []

        def begin() -> None:
            if keep:
                os.sched_setaffinity(0, keep)

        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.key_pairs.compiling", str(path)],
            env=chosen, cwd=folder or ROOT, preexec_fn=begin, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-500:])
        told = json.loads(done.stdout.splitlines()[-1])
        if package is not None and Path(told["package"]).parent != package:
            raise RuntimeError(f"compiled by {told['package']}")
        return Used(frozenset(told["kernels"]), frozenset(told["written"]), frozenset(told["models"]),
                    told["found model"], told["results"])  # fmt: skip


Side = Callable[[Bench], Used]


@dataclass(frozen=True)
class Pair:
    """Two compilations in one cache, the second after the first, and what must come of it.

    `kernel`: the code of the kernel is `shared` or `apart`. `model`: the whole compiled model is.
    """

    name: str
    wanted: Wanted
    first: Side
    second: Side
    level: Level = "kernel"
    same_results: bool = True
    """Whether both sides compute the same, where the pair is to be shared."""

    def verdict(self, first: Used, second: Used) -> str:
        """Empty where the pair is as wanted; else what it is."""
        if not first.kernels or not first.written >= first.kernels:
            return "the first side compiled no kernel"
        if self.level == "model":
            if not first.models:
                return "the first side kept no model"
            found = "shared" if second.found_model else "apart" if second.models - first.models else "lost"
        elif second.found_model or (second.kernels == first.kernels and not second.written):
            found = "shared"
        elif second.kernels and not second.kernels & first.kernels and second.written >= second.kernels:
            found = "apart"
        else:
            found = "half shared"
        if found != self.wanted:
            return found
        if found == "shared" and self.same_results and first.results != second.results:
            return "shared, with other results"
        return ""


@contextlib.contextmanager
def environment(**variables: str) -> Generator[None]:
    """Variables set for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
