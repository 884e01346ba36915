"""Docstrings as Sphinx gets them: literals, lists, indented text, and characters that mean themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXTENSIONS = Path(__file__).resolve().parents[2] / "docs" / "_extensions"


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plain_docstrings", EXTENSIONS / "plain_docstrings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Plain words.", "Plain words.\n"),
        ("a * b and |x| and name_ here", r"a \* b and \|x\| and name\_ here" + "\n"),
        ("`x`s of ``y``", r"\ ``x``\ s of \ ``y``\ " + "\n"),
        ("`a * b_`", r"\ ``a * b_``\ " + "\n"),
        ("two\nlines", "two lines\n"),
        ("first\n\nsecond", "first\n\nsecond\n"),
        ("    x = 1\n    y = 2", "::\n\n        x = 1\n        y = 2\n"),
        ("Head:\n- one\n  goes on\n- two", "Head:\n\n- one goes on\n- two\n"),
        ("1. one\n2. two", "- one\n- two\n"),
        ("", ""),
    ],
)
def test_conversion(plain: ModuleType, text: str, made: str) -> None:
    assert "\n".join(plain.convert(text.splitlines())) == made
