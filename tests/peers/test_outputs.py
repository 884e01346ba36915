"""When outputs count as equal, and how arrays go between processes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilework.peers.arrays import flattened, load, save
from tilework.peers.check import Checked
from tilework.peers.outputs import ABSOLUTE, RELATIVE, Compared, compare, tolerance


def one(ours: Any, reference: Any) -> tuple[bool, float]:
    (found,) = compare({"y": np.asarray(ours)}, {"z": np.asarray(reference)})
    assert found.name == "y"
    return found.equal, found.difference


def test_floating_values_may_differ_by_a_share_of_the_largest() -> None:
    reference = np.array([100.0, -3.0, 0.0], np.float32)
    assert tolerance(reference) == pytest.approx(RELATIVE * 100)
    assert one(reference + np.float32(1e-3), reference)[0]
    assert not one(reference + np.float32(1e-2), reference)[0]
    assert tolerance(np.zeros(3, np.float32)) == tolerance(np.empty((0,), np.float32)) == ABSOLUTE
    assert one(np.array([1 + 1e-6j]), np.array([1 + 0j]))[0]
    half = np.array([1, 2], ml_dtypes.bfloat16)
    assert one(half, half) == (True, 0.0)


def test_what_is_not_finite_has_to_be_the_same() -> None:
    reference = np.array([np.nan, np.inf, -np.inf, 1e5], np.float32)
    assert one(reference.copy(), reference) == (True, 0.0)
    for place, value in ((0, 1.0), (1, -np.inf), (2, np.nan), (3, np.inf)):
        other = reference.copy()
        other[place] = value
        assert one(other, reference) == (False, math.inf)


def test_everything_else_has_to_be_the_same() -> None:
    assert one(np.array([1, 2]), np.array([1, 2])) == (True, 0.0)
    assert one(np.array([2**63 - 1, 0]), np.array([2**63 - 2, 0])) == (False, 1.0)
    assert one(np.array([0], np.uint64), np.array([2**64 - 1], np.uint64))[0] is False
    assert one(np.array([True]), np.array([False])) == (False, 1.0)
    assert one(np.array(["a", "bc"]), np.array(["a", "bcd"])) == (False, 1.0)
    assert one(np.array(["a", "bc"]), np.array(["a", "bc"])) == (True, 0.0)
    assert one(np.zeros((1, 2)), np.zeros((2, 1))) == (False, math.inf)
    assert one(np.zeros(2, np.float32), np.zeros(2)) == (False, math.inf)
    assert one(np.float32(3), np.float32(3)) == (True, 0.0)


def test_another_number_of_outputs_is_a_difference() -> None:
    found = compare({"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.zeros(1)})
    assert [row.equal for row in found] == [True, False]
    assert "gives 2 arrays" in str(found[1])
    assert found[1].as_json()["difference"] is None


def test_of_very_many_arrays_the_worst_are_shown() -> None:
    rows = [Compared(f"y[{number}]", float(number), 45.0) for number in range(50)]
    lines = Checked("other", tuple(rows)).lines()
    assert lines[0] == "beside other: y[49]: DIFFERENT, largest difference 49 of 45 allowed"
    assert lines[-1] == "beside other: of 50 arrays, 46 are equal"
    assert len(lines) == 13


def test_sequences_and_maps_become_arrays() -> None:
    found = dict(flattened("y", [{"b": 1.5, "a": [2]}, (np.ones(2), None)]))
    assert list(found) == ["y[0]{a}[0]", "y[0]{b}", "y[1][0]"]
    (text,) = dict(flattened("t", np.array(["x", "yz"], object))).values()
    assert text.dtype.kind == "U"


def test_arrays_of_every_type_go_through_a_file(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "a/b": np.arange(3, dtype=np.int8), "x": np.array([1.5], ml_dtypes.bfloat16), "": np.array("text"),
        "file": np.array(2.0), "four": np.array([1, -2], ml_dtypes.int4), "none": np.empty((0, 3), np.float16),
    }  # fmt: skip
    found = load(tmp_path / "x.npz", save(tmp_path / "x.npz", arrays))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
