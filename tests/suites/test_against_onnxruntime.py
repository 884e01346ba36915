"""Tilework gives what ONNX Runtime gives, on models that people use, whatever the inputs and the number of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
from benchmarks import small_models
from benchmarks.harness import models
from benchmarks.harness.exact import exact_outputs
from benchmarks.harness.onnx_engines import excess, session
from tilework.runtime.context import ContextOptions

Arrays = dict[str, "np.ndarray[Any, Any]"]


AMPLIFIED = 2.0
"""Tolerances that a value may be off where ONNX Runtime's is further off still."""


def nearer(ours: Arrays, theirs: Arrays, exact: Arrays, noise: float) -> bool:
    """Whether outputs are as near to the exact ones as may be, where they are too far from ONNX Runtime's.

    Noise as input (random bytes) amplifies what is rounded: ONNX Runtime itself is up to 4.5 tolerances from the exact
    values there. Every output must then be at least as near as its, and never off by more than `AMPLIFIED` tolerances.
    """
    rounded = {name: value.astype(ours[name].dtype) for name, value in exact.items()}
    near = all(np.abs(ours[n] - exact[n]).max() <= np.abs(theirs[n] - exact[n]).max() for n in exact)
    return near and excess(ours, rounded, noise) <= AMPLIFIED


def compared(path: Path, noise: float, cases: list[Arrays], threads: int) -> None:
    """Compile once, and compare every case."""
    reference = session(str(path), threads)
    names = [output.name for output in reference.get_outputs()]
    with tilework.Context(ContextOptions(threads=threads)) as context:
        executable = tilework.compile(path, context=context)
        assert [port.name for port in executable.outputs] == names
        for case in cases:
            ours = dict(zip(names, executable(**case), strict=True))
            again = dict(zip(names, executable(*(case[port.name] for port in executable.inputs)), strict=True))
            theirs = dict(zip(names, reference.run(None, case), strict=True))
            if excess(ours, theirs, noise) > 1:
                exact = exact_outputs(path, case)
                assert nearer(ours, theirs, exact, noise)
            for name, value in ours.items():
                assert value.tobytes() == again[name].tobytes(), f"{name} differs from run to run"


@pytest.fixture(params=models.SMALL)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, float, Arrays]:
    """A model's file, ONNX Runtime's own noise on it, and inputs that make sense."""
    name: str = request.param
    model = models.fetch(name)
    path = model.path
    if name in small_models.CUT:
        path = tmp_path / "cut.onnx"
        small_models.cut(model.path, small_models.CUT[name], path)
    return path, model.noise, models.inputs(name)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_real_model(subject: tuple[Path, float, Arrays], threads: int) -> None:
    path, noise, given = subject
    random = np.random.default_rng(threads)
    compared(path, noise, [given, *(small_models.varied(given, random) for _ in range(4))], threads)


def test_the_file_type_model_serves_every_batch() -> None:
    model = models.fetch("magika__model")
    random = np.random.default_rng(5)
    cases: list[Arrays] = [
        {"bytes": random.integers(0, 257, (batch, 2048)).astype(np.int32)} for batch in (1, 2, 3, 7, 16)
    ]
    compared(model.path, model.noise, cases, threads=2)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_compilation_of_the_mlp_serves_every_batch(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "mlp.onnx"
    path.write_bytes(small_models.mlp().SerializeToString())
    random = np.random.default_rng(6)
    cases: list[Arrays] = [
        {"x": random.standard_normal((batch, 64)).astype(np.float32)}
        for batch in (*range(1, 18), 31, 32, 33, 63, 64, 0)
    ]
    compared(path, 0.0, cases, threads)
