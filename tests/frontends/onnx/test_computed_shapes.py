"""Reshapes whose entries a model computes: one that turns out to be 0 stands for the input's own extent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import tilework
from tilework.errors import RunError

F32 = np.float32
SIZES = ", ".join(
    f"int64[1] {name} = {{{number}}}"
    for name, number in {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "left": -1}.items()
)


def parsed(given: str, result: str, nodes: str) -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g ({given}) => (float[{result}] z) <{SIZES}> {{ {nodes} }}'
    )


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


@pytest.mark.parametrize("allow_zero", [0, 1])
def test_a_quotient_that_is_zero(allow_zero: int) -> None:
    proto = parsed(
        "float[a, b] x", "?, ?, ?",
        "s = Shape(x) rows = Gather(s, zero) columns = Gather(s, one) half = Div(columns, two) "
        f"t = Concat<axis = 0>(rows, half, one) z = Reshape<allowzero = {allow_zero}>(x, t)",
    )  # fmt: skip
    executable = tilework.compile(proto)
    for a, b in ((0, 1), (4, 1), (1, 1), (0, 0)):
        wanted = (a, b if b // 2 == 0 and not allow_zero else b // 2, 1)
        if a * b != np.prod(wanted):
            with pytest.raises(tilework.TileworkError):
                executable(x=numbers(a, b))
        else:
            (got,) = executable(x=numbers(a, b))
            assert got.shape == wanted
            np.testing.assert_array_equal(got.ravel(), numbers(a, b).ravel())


def test_a_product_and_a_swap() -> None:
    proto = parsed(
        "float[a, b, 4] x", "?, ?",
        "s = Shape(x) rows = Gather(s, zero) columns = Gather(s, one) p = Mul(rows, columns) "
        "t = Concat<axis = 0>(p, four) z = Reshape(x, t)",
    )  # fmt: skip
    executable = tilework.compile(proto)
    for a, b in ((2, 3), (0, 3), (1, 1), (0, 0)):
        (got,) = executable(x=numbers(a, b, 4))
        np.testing.assert_array_equal(got, numbers(a * b, 4))
    with pytest.raises(tilework.TileworkError):
        executable(x=numbers(3, 0, 4))  # its 0 stands for the input's 3
    proto = parsed(
        "float[a, b] x", "?, ?",
        "s = Shape(x) rows = Gather(s, zero) columns = Gather(s, one) t = Concat<axis = 0>(columns, rows) "
        "z = Reshape(x, t)",
    )  # fmt: skip
    executable = tilework.compile(proto)
    for a, b in ((2, 3), (0, 0), (1, 4)):
        (got,) = executable(x=numbers(a, b))
        np.testing.assert_array_equal(got, numbers(a, b).reshape(b, a))
    for a, b in ((0, 3), (3, 0)):
        with pytest.raises(tilework.TileworkError):
            executable(x=numbers(a, b))


@pytest.mark.parametrize("checked", [False, True])
def test_a_measured_extent_that_is_zero(checked: bool) -> None:
    """Fewer elements than the copied extents would have: an error, as in ONNX Runtime; its own extent may be 0."""
    rows = "c = Compress<axis = 0>(x, p) s = Shape(c) n = Gather(s, zero)"
    proto = parsed(
        "float[a, 4] x, bool[a] p", "?, ?, ?", f"{rows} t = Concat<axis = 0>(one, n, four) z = Reshape(c, t)"
    )
    executable = tilework.compile(proto, checked=checked)
    x = numbers(3, 4)
    for p in ((1, 0, 1), (0, 1, 0)):
        (got,) = executable(x=x, p=np.array(p, np.bool_))
        np.testing.assert_array_equal(got, x[np.array(p, np.bool_)][None])
    with pytest.raises(RunError, match=r"1803.*needs chosen >= 1"):
        executable(x=x, p=np.zeros(3, np.bool_))
    own = parsed("float[a, 4] x, bool[a] p", "?, ?, ?", f"{rows} t = Concat<axis = 0>(n, one, four) z = Reshape(c, t)")
    assert tilework.compile(own, checked=checked)(x=x, p=np.zeros(3, np.bool_))[0].shape == (0, 1, 4)


@pytest.mark.parametrize(
    ("inner", "target", "wanted"),
    [
        # what is left beside an extent that data decide is divided when the model runs, and 0 copies the input's own
        ((4,), "n, left", [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]),
        ((4,), "left, n", [(0, 4), (4, 1), (4, 2), (4, 3), (4, 4)]),
        ((4,), "one, n, left", [(1, 4, 0), (1, 1, 4), (1, 2, 4), (1, 3, 4), (1, 4, 4)]),
        ((2, 4), "n, n, left", [None, (1, 1, 8), (2, 2, 4), None, (4, 4, 2)]),
        ((4,), "left, three", [(0, 3), None, None, (4, 3), None]),
        ((0, 2), "one, n, left", [(1, 0, 0), (1, 1, 0), (1, 2, 0), (1, 3, 0), (1, 4, 0)]),
        ((0, 2), "three, n, four", [(3, 0, 4), None, None, None, None]),
    ],
)
def test_what_is_left_beside_a_measured_extent(
    inner: tuple[int, ...], target: str, wanted: list[tuple[int, ...] | None]
) -> None:
    """By the number of rows that are chosen; None: an error, as in ONNX Runtime."""
    proto = parsed(
        f"float[4, {', '.join(map(str, inner))}] x, bool[4] p", "?, ?" + ", ?" * (target.count(",") - 1),
        "c = Compress<axis = 0>(x, p) s = Shape(c) n = Gather(s, zero) "
        f"t = Concat<axis = 0>({target}) z = Reshape(c, t)",
    )  # fmt: skip
    executable = tilework.compile(proto, checked=True)
    x = numbers(4, *inner)
    for count, shape in enumerate(wanted):
        if shape is None:
            with pytest.raises(RunError, match="1803"):
                executable(x=x, p=np.arange(4) < count)
        else:
            (got,) = executable(x=x, p=np.arange(4) < count)
            np.testing.assert_array_equal(got, x[:count].reshape(shape))


def test_no_elements_under_an_extent_that_is_measured_later() -> None:
    proto = parsed(
        "float[a, 0] x, bool[a] p, float[b] y, bool[b] q", "?, ?",
        "c = Compress<axis = 0>(x, p) d = Compress(y, q) s = Shape(d) t = Concat<axis = 0>(s, zero) z = Reshape(c, t)",
    )  # fmt: skip
    executable = tilework.compile(proto)
    for p, q in (((1, 0), (1, 1, 1)), ((1, 1), (0, 1, 0)), ((0, 0), (0, 0, 0))):
        masks = {"p": np.array(p, np.bool_), "q": np.array(q, np.bool_)}
        (got,) = executable(x=numbers(2, 0), y=numbers(3), **masks)
        assert got.shape == (sum(q), 0)
