"""The pages say what happens: their code runs from top to bottom, and prints what they show.

Fences of a page:

- `python` runs; all of one page in one namespace, in a folder with a `model.onnx`. A `text` block after it is what it
  prints.
- `console` and `bash`: a shell in that folder runs the lines that begin with `$ `. Lines below one are what it prints.
- `...` in what is shown stands for any text.
- `<!-- not run: REASON -->` on the line above a fence leaves it out, for one of `REASONS`.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
REASONS = {
    "installs": "it fetches packages or makes an environment",
    "long": "it takes minutes",
    "yours": "it names what only a reader has",
}
PEERS = ("torch", "onnxruntime", "openvino")
"""Libraries that a page may import and that need not be there."""
CODE = ("python", "console", "bash")
SECONDS = 120.0
"""The longest a command may take."""

FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>.*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its first line, and `shown` what it prints by the page (None: not shown)."""

    kind: str
    text: str
    line: int
    reason: str | None = None
    shown: str | None = None

    @property
    def peers(self) -> tuple[str, ...]:
        """The libraries it imports, or compares with by `--check`, that need not be there."""
        used = r"^\s*(import|from) {0}\b|--check [\w,]*\b{0}\b"
        return tuple(name for name in PEERS if re.search(used.format(name), self.text, re.MULTILINE))


def blocks(text: str) -> list[Block]:
    """The blocks of code of a page, in order."""
    found: list[Block] = []
    for match in FENCE.finditer(text):
        kind, line = match["kind"], text.count("\n", 0, match.start("text")) + 1
        if kind in CODE:
            found.append(Block(kind, match["text"], line, match["reason"]))
        elif kind == "text":
            before = found.pop()
            assert before.kind == "python", f"line {line}: no code above prints this"
            assert before.shown is None, f"line {line}: shown already"
            found.append(Block("python", before.text, before.line, before.reason, match["text"]))
    return found


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what is shown below it."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, shown = found.pop()
            found.append((command, f"{shown}{line}\n"))
    return found


def pages() -> list[Path]:
    """The pages that people write: README.md and docs/, less what is generated and what tells of decisions."""
    docs = ROOT / "docs"
    left_out = {docs / "generated", docs / "design", docs / "_build"}
    written = sorted(path for path in docs.rglob("*.md") if not left_out.intersection(path.parents))
    return [ROOT / "README.md", *written]


def dense() -> bytes:
    """y = softmax(relu(x @ w + b)) over [N, 64]."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 16])
    generator = np.random.default_rng(0)
    weights = {"w": generator.standard_normal((64, 16), np.float32), "b": generator.standard_normal(16, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["hidden"]),
        helper.make_node("Softmax", ["hidden"], ["y"], axis=1),
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "dense", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def double() -> bytes:
    """y = x + x over [N, 4]."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "double", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


MODELS = {"docs/python.md": double}
"""What `model.onnx` is on a page; `dense` on others."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_as_shown(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)


def run_python(block: Block, page: str, names: dict[str, object]) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), names)
    if block.shown is not None:
        assert is_as_shown(block.shown, output.getvalue()), f"{page}:{block.line} prints\n{output.getvalue()}"


def run_console(block: Block, page: str, folder: Path, environment: dict[str, str]) -> None:
    for command, shown in commands(block.text):
        done = subprocess.run(
            ["bash", "-c", f"umask 022; {command}"], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        told = f"{page}:{block.line}: {command}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, told
        assert not shown or is_as_shown(shown, done.stdout), told


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a reader's shell has: `python`, `tilework`, and a cache of its own."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, arguments in (("python", ""), ("tilework", "-m tilework")):
        path = programs / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        path.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TILEWORK_")}
    return kept | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))),
        "TILEWORK_CACHE_DIR": str(tmp_path / "cache"),
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_code_runs_and_prints_what_the_page_shows(
    page: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that import what is not installed are left out, and the test is skipped then, once all others have run."""
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(MODELS.get(name_of(page), dense)())
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "__main__"}
    absent: set[str] = set()
    for block in blocks(page.read_text()):
        missing = {name for name in block.peers if find_spec(name) is None}
        absent |= missing
        if block.reason is not None or missing:
            continue
        if block.kind == "python":
            run_python(block, name_of(page), names)
        else:
            run_console(block, name_of(page), folder, environment)
    if absent:
        pytest.skip(f"not installed: {', '.join(sorted(absent))}; the other blocks ran (`make peers` installs them)")


def test_what_is_not_run_has_a_reason_and_is_little() -> None:
    every = [(name_of(page), block) for page in pages() for block in blocks(page.read_text())]
    left_out = [(page, block) for page, block in every if block.reason is not None]
    assert [(page, block.line) for page, block in left_out if block.reason not in REASONS] == []
    assert len(every) > 20
    assert len(left_out) <= 12, left_out


def test_every_fence_is_seen() -> None:
    for page in pages():
        text = page.read_text()
        fences = re.findall(rf"^ *```(?:{'|'.join(CODE)})\b.*$", text, re.MULTILINE)
        assert len(fences) == len(blocks(text)), f"{page}: a fence that is indented, or has more words than its kind"


def test_a_page_that_is_wrong_is_told() -> None:
    text = (
        "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n<!-- not run: long -->\n```console\n$ a\nb\nc\n$ d\n```\n"
    )
    sums, shell = blocks(text)
    (beside,) = blocks("```console\n$ tilework run m --check openvino,onnxruntime\n```\n")
    assert (sums.peers, shell.peers, beside.peers) == ((), (), ("onnxruntime", "openvino"))
    with pytest.raises(AssertionError, match=r"page:2 prints\n +2"):
        run_python(sums, "page", {})
    assert (shell.reason, shell.line) == ("long", 11)
    assert commands(shell.text) == [("a", "b\nc\n"), ("d", "")]
    with pytest.raises(AssertionError, match="no such"):
        run_console(Block("console", "$ echo no such; exit 3\n", 1), "page", Path.cwd(), dict(os.environ))
    with pytest.raises(AssertionError, match="echo other"):
        run_console(Block("console", "$ echo other\nshown\n", 1), "page", Path.cwd(), dict(os.environ))
    run_console(Block("console", "$ echo took 3 ms\ntook ... ms\n", 1), "page", Path.cwd(), dict(os.environ))
