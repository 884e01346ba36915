"""The page on Python says what happens: its code runs from top to bottom and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from onnx import TensorProto, helper

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def model() -> bytes:
    """y = x + x over [N, 4]."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return made.SerializeToString()


def blocks() -> list[tuple[str, str]]:
    """Each snippet of code, with what the page says it prints."""
    found: list[tuple[str, str]] = []
    for kind, text in re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        if kind == "python":
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], text)
    return found


@pytest.mark.parametrize("torch", [False, True], ids=["without torch", "with torch"])
def test_every_snippet_runs_and_prints_what_the_page_shows(
    torch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch:
        pytest.importorskip("torch", reason="torch is not installed: `make peers` installs it")
    (tmp_path / "model.onnx").write_bytes(model())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = 0
    for text, wanted in blocks():
        if "import torch" in text and not torch:
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(text, str(PAGE), "exec"), names)
        assert output.getvalue() == wanted
        shown += bool(wanted)
    assert shown == 3 + torch
