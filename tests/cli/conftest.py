"""Small models in files, and the command line run inside this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object that it has to be."""
        return json.loads(self.out)


Run = Callable[..., Done]
MakeModel = Callable[..., Path]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line with these words, free of what the environment says."""
    for name in (
        "TILEWORK_MACHINE",
        "TILEWORK_TRACE",
        "TILEWORK_NUM_THREADS",
        "TILEWORK_MEMORY_LIMIT",
        "TILEWORK_CACHE_LIMIT",
    ):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str | Path) -> Done:
        code = 0
        capsys.readouterr()
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def make_model(tmp_path: Path) -> MakeModel:
    """Write an ONNX file of one operator: its type, inputs with their dimensions, names of its outputs."""

    def make(
        operator: str = "Add",
        inputs: Mapping[str, Sequence[int | str]] | None = None,
        outputs: Sequence[str] = ("y",),
        dtype: str = "FLOAT",
        **attributes: Any,
    ) -> Path:
        import onnx
        from onnx import helper

        shapes = inputs if inputs is not None else {"a": ("N", 3), "b": ("N", 3)}
        kind = getattr(onnx.TensorProto, dtype)
        node = helper.make_node(operator, list(shapes), list(outputs), name="only", **attributes)
        graph = helper.make_graph(
            [node], "small",
            [helper.make_tensor_value_info(name, kind, list(dims)) for name, dims in shapes.items()],
            [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        )  # fmt: skip
        path = tmp_path / "model.onnx"
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path.write_bytes(made.SerializeToString())
        return path

    return make


@pytest.fixture
def model(make_model: MakeModel) -> Path:
    """y = a + b over [N, 3]."""
    return make_model()


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write an array to a .npy file of that name."""

    def save(name: str, array: Any) -> Path:
        path = tmp_path / name
        np.save(path, np.asarray(array))
        return path

    return save
