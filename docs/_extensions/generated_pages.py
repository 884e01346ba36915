"""Pages made from the source: errors, environment variables, primitives, ONNX operators, modules of every folder."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilework.environment import VARIABLES
from tilework.error_codes import GROUPS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
GENERATED = DOCS / "generated"
SOURCE = DOCS.parent / "src" / "tilework"

# Words that everybody uses and that are folders.
WORDS = ("dims", "error_codes")

# In the order in which a model passes through them; the words that everybody uses come first.
FOLDERS = (
    "graph", "loops", "compute", "ops", "dependence", "machine", "plan", "schedule", "lowering", "codegen", "cost",
    "memory", "records", "cache", "runtime", "candidates", "algorithms", "recipes", "polyhedral", "tuning", "passes",
    "decisions", "compiler", "frontends", "report", "cli",
)  # fmt: skip


def write(name: str, text: str) -> None:
    """Write a page under docs/generated, leaving an unchanged one as it is: Sphinx then need not read it again."""
    path = GENERATED / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def error_pages() -> list[str]:
    """Write a page a code and the list of them; return the names of the pages."""
    sections: list[str] = []
    pages: list[str] = []
    for heading, codes in GROUPS.values():
        rows = "\n".join(f"| [TW{code}](errors/tw{code}.md) | {info.title} |" for code, info in codes.items())
        sections.append(f"## {heading}\n\n| code | |\n|---|---|\n{rows}\n")
        for code, info in codes.items():
            text = f"# TW{code}: {info.title}\n\n{info.meaning}\n\n**What to do.** {info.remedy}\n"
            write(f"errors/tw{code}", text)
            pages.append(f"errors/tw{code}")
    listed = "\n".join(pages)
    head = (
        "# Errors\n\nEvery error that Tilework raises on purpose is a `tilework.TileworkError`. It has a `code`, a "
        "`message`, the place it speaks of in `where`, and what to do in `hint`. A code keeps its meaning from version "
        "to version.\n\n"
    )
    write("errors", f"{head}" + "\n".join(sections) + f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n")
    return ["errors", *pages]


def environment_page() -> list[str]:
    """Write the page of the environment variables."""
    entries = "\n\n".join(f"`{name}`\n: {entry.meaning} Holds {entry.kind}." for name, entry in VARIABLES.items())
    head = (
        "A variable that is unset or empty changes nothing; a value of another kind is refused with "
        "[TW1002](errors/tw1002.md), an unknown machine with [TW1620](errors/tw1620.md). What a call, a context or a "
        "command is given explicitly wins. The commands tell of variables of this prefix that nothing reads."
    )
    write("environment", f"# Environment variables\n\n{head}\n\n{entries}\n")
    return ["environment"]


def primitive_page() -> list[str]:
    """Write the page of the primitives: each file of their folder, what it does, when it is legal, its arguments."""
    sections: list[str] = []
    for path in sorted((SOURCE / "schedule" / "primitives").glob("*.py")):
        module = ast.parse(path.read_text())
        classes = [n for n in module.body if isinstance(n, ast.ClassDef) and _is_primitive(n)]
        if classes:
            sections.append(_primitive_section(ast.get_docstring(module) or "", classes[-1]))
    head = (
        '# Primitives\n\nA schedule is a chain of steps. `schedule.split("i", 8)` checks that the step is legal, and '
        "gives the schedule after it; a step that is illegal, or that cannot be proven legal, is refused with the "
        "reason and, where there is one, two iterations that would meet. Every legal step keeps the values.\n\n"
    )
    write("primitives", head + "\n".join(sections))
    return ["primitives"]


def _is_primitive(node: ast.ClassDef) -> bool:
    return any(isinstance(entry, ast.AnnAssign) and ast.unparse(entry.target) == "name" for entry in node.body)


def _primitive_section(text: str, node: ast.ClassDef) -> str:
    """The section of one primitive from its class and its module's docstring: `name: what it does`, a picture, more."""
    summary, *rest = text.split("\n\n")
    name, _, what = summary.partition(": ")
    blocks = [f"```text\n{block}\n```" if block.startswith("    ") else block for block in rest]
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign) and "ClassVar" not in ast.unparse(n.annotation)]
    named = [f"{ast.unparse(f.target)}={ast.unparse(f.value)}" if f.value else ast.unparse(f.target) for f in fields]
    what = what[:1].upper() + what[1:].replace("\n", " ")
    legality = ast.get_docstring(node) or ""
    call = f"```python\nschedule.{name}({', '.join(named)})\n```"
    return "\n\n".join([f"## {name}", what, call, *blocks, legality]) + "\n"


def is_documented(path: Path) -> bool:
    """Whether a module has more in it than a docstring, and a public name."""
    body = ast.parse(path.read_text()).body
    return not path.stem.startswith("_") and len(body) > 1


def module_pages() -> list[str]:
    """Write a page for the words everybody uses and one for each folder there is; return their names."""
    pages: dict[str, list[Path]] = {
        "words": sorted([*SOURCE.glob("*.py"), *(path for word in WORDS for path in (SOURCE / word).glob("*.py"))])
    }
    pages |= {folder: sorted((SOURCE / folder).rglob("*.py")) for folder in FOLDERS}
    written: list[str] = []
    for name, paths in pages.items():
        modules = [
            ".".join(("tilework", *path.relative_to(SOURCE).with_suffix("").parts))
            for path in paths
            if is_documented(path)
        ]
        if not modules:
            continue
        title = "The words everybody uses" if name == "words" else f"{name}/"
        directive = "```{{eval-rst}}\n.. automodule:: {0}\n```\n"
        sections = [f"## {module}\n\n{directive.format(module)}" for module in modules]
        write(f"modules/{name}", f"# {title}\n\n" + "\n".join(sections))
        written.append(f"modules/{name}")
    listed = "\n".join(written)
    text = "# Modules\n\nFor those who work on Tilework or build on its programs, in the order of processing.\n\n"
    write("modules", f"{text}```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")
    return ["modules", *written]


def operator_page() -> list[str]:
    """Write the page of the ONNX operators."""
    from operator_coverage import page  # beside this file, on Sphinx's path

    write("onnx-operators", page())
    return ["onnx-operators"]


def generate(app: Sphinx) -> None:
    """Write every page, and take away pages of an earlier build that nothing stands behind any more."""
    del app
    wanted = {*error_pages(), *environment_page(), *primitive_page(), *operator_page(), *module_pages()}
    for path in GENERATED.rglob("*.md"):
        if path.relative_to(GENERATED).with_suffix("").as_posix() not in wanted:
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True}
