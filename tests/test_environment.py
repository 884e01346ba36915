"""The registry of environment variables: values, refusals, slips of the pen, and that nothing else reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilework import environment
from tilework.environment import MACHINE, MEMORY_LIMIT, MODELS, NUM_THREADS, TRACE, VARIABLES, Variable
from tilework.errors import UsageError

SOURCE = Path(__file__).resolve().parents[1] / "src"


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        (NUM_THREADS, "2", 2),
        (NUM_THREADS, " 16 ", 16),
        (NUM_THREADS, "", None),
        (NUM_THREADS, "  ", None),
        (MACHINE, "x86-64-v3", "x86-64-v3"),
        (MODELS, "/models", Path("/models")),
        (TRACE, "trace.txt", Path("trace.txt")),
        (MEMORY_LIMIT, "4096", 4096),
        (MEMORY_LIMIT, "3k", 3 * 1024),
        (MEMORY_LIMIT, "2GiB", 2 * 1024**3),
        (MEMORY_LIMIT, "1 TB", 1024**4),
    ],
)
def test_values(variable: Variable[Any], text: str, value: object) -> None:
    assert environment.read(variable, {variable.name: text}) == value


def test_unset_is_none() -> None:
    assert all(environment.read(variable, {}) is None for variable in VARIABLES.values())


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (NUM_THREADS, "0"),
        (NUM_THREADS, "-1"),
        (NUM_THREADS, "two"),
        (NUM_THREADS, "1.5"),
        (NUM_THREADS, "1_000"),
        (NUM_THREADS, "٣"),
        (NUM_THREADS, "9" * 30),
        (MEMORY_LIMIT, "0"),
        (MEMORY_LIMIT, "G"),
        (MEMORY_LIMIT, "1P"),
    ],
)
def test_what_makes_no_sense_is_refused_by_code(variable: Variable[Any], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        environment.read(variable, {variable.name: text})
    assert caught.value.code == 1002
    assert variable.name in str(caught.value)
    assert variable.kind in str(caught.value)


def test_the_process_is_read_where_nothing_else_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "3")
    assert environment.read(NUM_THREADS) == 3


def test_slips_of_the_pen_are_told() -> None:
    assert environment.unknown({"TILEWORK_NUM_THREAD": "1", "TILEWORK_MODELS": "x", "PATH": ""}) == (
        "TILEWORK_NUM_THREAD",
    )


def test_every_variable_has_the_prefix_and_its_words() -> None:
    for name, variable in VARIABLES.items():
        assert name == variable.name
        assert name.startswith((environment.PREFIX, "XDG_"))
        assert variable.kind
        assert variable.meaning.endswith(".")


def test_every_variable_is_read_by_somebody() -> None:
    """A variable that is documented and never read would be a promise not kept."""
    root = SOURCE.parent
    texts = [path.read_text() for folder in ("src", "benchmarks") for path in (root / folder).rglob("*.py")]
    constants = {
        name for name, value in vars(environment).items() if isinstance(value, Variable) and name == name.upper()
    }
    assert len(constants) == len(VARIABLES)
    assert [name for name in constants if not any(f"read(environment.{name})" in text for text in texts)] == []
