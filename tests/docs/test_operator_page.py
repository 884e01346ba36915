"""The page of the ONNX operators has a line for each that the package onnx knows, and a reason for what is missing."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from onnx import defs

from tilework.frontends.onnx.converters import converters, qualified
from tilework.frontends.onnx.words import of_strings

EXTENSIONS = Path(__file__).resolve().parents[2] / "docs" / "_extensions"


@cache
def coverage() -> Any:
    spec = importlib.util.spec_from_file_location("operator_coverage", EXTENSIONS / "operator_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_operator_has_a_line() -> None:
    lines = [line for line in coverage().page().splitlines() if line.startswith("| ")]
    named = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    for schema in defs.get_all_schemas():
        assert schema.name in named
    assert all(line.count(" | ") == 3 for line in lines)


def test_what_is_missing_has_a_reason() -> None:
    found = coverage()
    missing = {key for key, versions in found.schemas().items() if found.how(versions[-1]) == "missing"}
    assert missing == set(found.MISSING)


def test_every_converter_is_of_an_operator_that_there_is() -> None:
    known = {qualified(schema.domain, schema.name) for schema in defs.get_all_schemas_with_history()}
    others = {key for key in converters() if key.startswith("com.microsoft::")} | set(map(of_strings, known))
    assert set(converters()) <= known | others


def test_types_and_ways() -> None:
    found = coverage()
    text = found.page()
    assert (
        "| Add | 1, 6, 7, 13, 14 | float16, float32, float64, int8 to int64, uint8 to uint64, bfloat16 | generated |"
        in text
    )
    assert "| If | " in text
    assert "control flow |" in text
    assert "composed |" in text
