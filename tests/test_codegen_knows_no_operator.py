"""Code generation sees loop programs and plans: it names no operator and no recipe.

Every identifier and every string of `codegen/` and `lowering/` is cut into words (`emit_softmax`, `SoftmaxPrinter`,
`"softmax:"` all hold the word `softmax`) and searched for the file names of `ops/*/` and `recipes/*/`. Comments and
docstrings may say what they like.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilework.loops.functions import FUNCTIONS

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tilework"

# Words that are operators' names and also something a code generator has to speak of: every scalar function that a loop
# program may call, and these.
OTHER_SENSE = {
    "scalar values, under names that vary": """
        abs and clamp compare convert cosine exponential not or power round rsqrt select shift sign sine sqrt where xor
    """,
    "instructions of LLVM and CUDA": """
        bitcast broadcast call cast compress expand gather insert reduce scatter shift_left shift_right_arithmetic
        shift_right_logical shuffle
    """,
    "Python's, and everyday words": """
        case concat constant copy cumulative fill identity if index loop mean optional pad print product range repeat
        reverse scan sequence shape size slice sort split squeeze stack sum take tile transpose unique while
    """,
}
ALLOWED = frozenset(word for words in OTHER_SENSE.values() for word in words.split()) | frozenset(FUNCTIONS)


def variant_names(folder: Path) -> set[str]:
    """Return the names of the variants in the sub-folders of a folder: `ops/<family>/<operator>.py`.

    A file that would have the name of a keyword has an underscore after it, which is not part of the name.
    """
    return {path.stem.rstrip("_") for path in folder.glob("*/*.py") if not path.stem.startswith("_")}


def words(text: str) -> str:
    """Return a text's words in lower case, each with a space around it."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return " " + " ".join(re.findall(r"[a-z0-9]+", apart.lower())) + " "


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every identifier and every string but the docstrings, with its line."""
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstrings.update(id(item.value) for item in node.body if isinstance(item, ast.Expr))
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield line, node.value
        for field in ("id", "attr", "arg", "name", "module", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield line, value


def findings(path: Path, names: set[str]) -> list[str]:
    """Return one line for each operator or recipe that a file names, and each import of their folders."""
    found: list[str] = []
    needles = {name: words(name) for name in names - ALLOWED}
    for line, text in texts(ast.parse(path.read_text())):
        held = words(text)
        found += [
            f"{path.name}:{line}: {text[:60]!r} names {name}" for name, needle in needles.items() if needle in held
        ]
        if re.fullmatch(r"tilework\.(ops|recipes)(\..*)?", text):
            found.append(f"{path.name}:{line}: imports {text}")
    return found


def test_no_operator_or_recipe_is_named() -> None:
    names = variant_names(SOURCE / "ops") | variant_names(SOURCE / "recipes")
    files = [path for folder in ("codegen", "lowering") for path in sorted((SOURCE / folder).rglob("*.py"))]
    assert [line for path in files for line in findings(path, names)] == []


def test_the_operators_that_matter_are_not_excused() -> None:
    for name in ("softmax", "dot_general", "convolution", "reduce_window", "matmul", "layer_norm", "attention", "gemm"):
        assert name not in ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        "def emit_softmax(): ...",
        "class SoftmaxPrinter: ...",
        "KIND = 'softmax'",
        "x = f'{1} softmax of'",
        "import thing as softmax",
        "node.softmax",
        "call(softmax=1)",
        "def f(dot_general): ...",
        "if kind == 'dot-general': ...",
        "from tilework.ops.matrix import anything",
        "import tilework.recipes.cpu.anything",
        "from tilework import x\n\n\ndef f():\n    '''Doc.'''\n    return 'DotGeneral'",
    ],
)
def test_planted_names_are_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "planted.py"
    path.write_text(text)
    assert findings(path, {"softmax", "dot_general", "add"}) != []


@pytest.mark.parametrize(
    "text",
    [
        "'''A softmax is only a loop program here.'''\n# dot_general too",
        "def softmaxing(): ...",
        "def add(): ...",
        "dot = 1\ngeneral = 2",
        "from tilework.loops import tree",
        "from tilework.opsomething import x",
    ],
)
def test_innocent_text_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "innocent.py"
    path.write_text(text)
    assert findings(path, {"softmax", "dot_general", "add"}) == []
