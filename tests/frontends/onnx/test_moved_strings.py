"""Operators that only move elements, on strings: from outside, known, and both; against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import tilework
from tests.frontends.onnx.models import codes_of
from tilework.errors import CallError, FrontendError, RunError

HEAD = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 4]>\n'
HELD = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] shape = {3, -1}, int64[2] times = {2, 1}, "
    'int64[1,2] j = {1, -1}, string[1] k = {"k"}'
)
X = np.array([["b", "a", "d"], ["", "e", "a"]], object)


def compiled(text: str) -> Any:
    return tilework.compile(onnx.parser.parse_model(f"{HEAD}{text}"))


def check(body: str, wanted: Any, kind: str = "string[?,?]", **feed: Any) -> None:
    """What a node makes of `X`, with sizes known and free, and of `X` as words that are known."""
    for shape in ("2,3", "n,m"):
        executable = compiled(f"g (string[{shape}] x, int64[p,q] i, bool[r] c) => ({kind} y) <{HELD}> {{ {body} }}")
        found = executable(X, feed.get("i", np.zeros((1, 1), np.int64)), feed.get("c", np.array([True])))[0]
        assert found.dtype == object
        np.testing.assert_array_equal(found, wanted)
    known = ", ".join(f'"{text}"' for text in X.reshape(-1))
    text = f"g (int64[p,q] i, bool[r] c) => ({kind} y) <{HELD}, string[2,3] x = {{{known}}}> {{ {body} }}"
    found = compiled(text)(feed.get("i", np.zeros((1, 1), np.int64)), feed.get("c", np.array([True])))[0]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("y = Transpose(x)", X.T), ("y = Reshape(x, shape)", X.reshape(3, 2)),
        ("y = Tile(x, times)", np.tile(X, (2, 1))),
        ("y = Slice(x, zero, one, one)", X[:, :1]), ("y = Concat<axis=1>(x, x)", np.concatenate([X, X], 1)),
        ("y = Identity(x)", X), ("y, w = Split<num_outputs=2, axis=0>(x)", X[:1]),
        ("s = SequenceConstruct(x, x) y = ConcatFromSequence<axis=0>(s)", np.concatenate([X, X])),
        ("z = Unsqueeze(x, zero) y = Squeeze(z, zero)", X), ("y = Where(c, x, k)", X),
        ("n = Not(c) y = Where(n, x, k)", np.full((2, 3), "k", object)),
        ("z = Transpose(x) w = Concat<axis=1>(z, z) y = Transpose(w)", np.concatenate([X, X])),
    ],
)  # fmt: skip
def test_moves_that_need_nothing_else(body: str, wanted: Any) -> None:
    check(body, wanted)


def test_moves_by_positions_and_flags() -> None:
    i, c = np.array([[1, -1]]), np.array([False, True])
    check("y = Gather<axis=1>(x, i)", X[:, i], "string[?,?,?]", i=i)
    check("y = GatherND(x, j)", X[1, -1:], "string[?]")
    check("y = Compress<axis=0>(x, c)", X[1:], c=c)
    check("y = Compress(x, c)", X.reshape(-1)[1:2], "string[?]", c=c)
    rows = np.array([[1, 0, 1], [0, 1, 0]])
    check("y = GatherElements<axis=0>(x, i)", np.take_along_axis(X, rows, 0), i=rows)
    scattered = X.copy()
    np.put_along_axis(scattered, rows[:1], X[:1], 0)
    check("u = Slice(x, zero, one) y = ScatterElements<axis=0>(x, i, u)", scattered, i=rows[:1])
    check("y = ScatterND(x, j, k)", np.where(np.arange(6).reshape(2, 3) == 5, "k", X))
    with pytest.raises(RunError, match="TW1801"):
        check("y = Gather<axis=1>(x, i)", X, "string[?,?,?]", i=np.array([[3]]))


def test_padding_is_empty_or_what_is_given() -> None:
    ends = "ends = Concat<axis=0>(zero, one, zero, two)"
    check(f"{ends} y = Pad(x, ends)", np.pad(X, ((0, 0), (1, 2)), constant_values=""))
    check(f"{ends} v = Squeeze(k) y = Pad(x, ends, v)", np.pad(X, ((0, 0), (1, 2)), constant_values="k"))


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_distinct_strings(order: int, axis: int | None) -> None:
    how = f"sorted={order}" if axis is None else f"sorted={order}, axis={axis}"
    x = np.array([["b", "a", "b", "é"], ["b", "a", "b", ""]], object)
    _, ranks = np.unique(x, return_inverse=True)
    _, first, inverse, counts = np.unique(ranks.reshape(x.shape), True, True, True, axis=axis)
    steps = np.arange(len(first)) if order else np.argsort(first)
    back = np.empty(len(first), int)
    back[steps] = np.arange(len(first))
    wanted = x.reshape(-1)[first[steps]] if axis is None else np.take(x, first[steps], axis)
    outputs = "string[?] y, int64[?] f, int64[?] i, int64[?] c"
    executable = compiled(f"g (string[n,m] x) => ({outputs}) {{ y, f, i, c = Unique<{how}>(x) }}")
    for found, one in zip(executable(x), (wanted, first[steps], back[inverse].reshape(-1), counts[steps]), strict=True):
        np.testing.assert_array_equal(found, one)


def test_nothing_at_all_and_one() -> None:
    executable = compiled("g (string[n] x, string[m] w) => (string[?] y, string[?] u) "
                          "{ y = Concat<axis=0>(x, w) u = Unique(y) }")  # fmt: skip
    for x, w in (([], []), (["a"], []), ([], ["b"]), (["b", "a"], ["b"])):
        y, u = executable(np.array(x, object), np.array(w, object))
        assert y.tolist() == [*x, *w]
        assert u.tolist() == sorted({*x, *w})


def test_sizes_of_strings() -> None:
    """Alone they tell a size; where a tensor has it too, both must agree."""
    executable = compiled("g (string[n,m] x) => (int64[2] s, int64 c) { s = Shape(x) c = Size(x) }")
    for shape in ((2, 3), (0, 4), (1, 1)):
        s, c = executable(np.full(shape, "a", object))
        assert s.tolist() == list(shape)
        assert c == np.prod(shape)
    executable = compiled("g (string[n] x, float[m] v) => (float[?,?] y) <int64[1] e = {-1}> "
                          "{ s = Shape(x) t = Concat<axis=0>(s, e) y = Reshape(v, t) }")  # fmt: skip
    assert executable(np.array(["a", "b"], object), np.arange(6, dtype=np.float32))[0].shape == (2, 3)


def test_fixed_sizes_are_checked() -> None:
    executable = compiled("g (string[3] x) => (string[?] y) <int64[1] i = {2}> { y = Gather(x, i) }")
    assert executable(np.array(["a", "b", "c"], object))[0].tolist() == ["c"]
    for shape in ((2,), (4,), (3, 1), ()):
        with pytest.raises(CallError, match=r"TW1705.*x has the shape"):
            executable(np.full(shape, "a", object))


def test_numbers_are_no_strings() -> None:
    executable = compiled("g (string[n] x) => (string[?] y) { y = Concat<axis=0>(x, x) }")
    with pytest.raises(CallError, match=r"TW1702.*takes strings"):
        executable(np.zeros(2, np.float32))


def test_strings_are_not_added() -> None:
    text = 'g (string[n] x, int64[n] i) => (string[n] y) { y = ScatterElements<reduction: string = "add">(x, i, x) }'
    assert codes_of(onnx.parser.parse_model(f"{HEAD}{text}")) == {1108}


def test_bodies_read_strings_from_around_them() -> None:
    """What only looks at strings is done before the loop."""
    look = 'l = ai.onnx.ml.LabelEncoder<keys_strings=["a"], values_int64s=[5]>(x) vo = Add(v, l)'
    body = f"graph = b(int64 i, bool c, int64[?] v) => (bool d, int64[?] vo) {{ d = Identity(c) {look} }}"
    executable = compiled(f"g (string[n] x, int64[n] v, int64 t) => (int64[?] y) {{ y = Loop(t, , v) <body: {body}> }}")
    for trips in (0, 1, 3):
        found = executable(np.array(["a", "z"], object), np.array([1, 1]), np.array(trips))[0]
        assert found.tolist() == [1 + 5 * trips, 1 - trips]


def chosen(then: str, other: str, inputs: str = "") -> Any:
    """y = then where p holds, else other."""
    branches = f"then_branch: graph = t() => (string[?] a) {then}, else_branch: graph = e() => (string[?] b) {other}"
    return onnx.parser.parse_model(f"{HEAD}g (bool p{inputs}) => (string[?] y) {{ y = If(p) <{branches}> }}")


def test_branches_return_strings() -> None:
    known = '<string[2] b = {"u", "w"}> {}'
    executable = tilework.compile(chosen('<string[2] a = {"u", "v"}> {}', known))
    assert [executable(np.array(p))[0].tolist() for p in (True, False)] == [["u", "v"], ["u", "w"]]
    executable = tilework.compile(chosen("{ a = Identity(x) }", known, ", string[n] x"))
    for x in (["q", "r"], ["q"], [], ["q", "r", "s"]):
        found = [executable(np.array(p), np.array(x, object))[0].tolist() for p in (True, False)]
        assert found == [x, ["u", "w"]]
    executable = tilework.compile(chosen("{ a = Identity(x) }", "{ b = Identity(w) }", ", string[n] x, string[n] w"))
    for x, w in ((["q", "r"], ["s", "t"]), (["q"], ["r"]), ([], [])):
        found = [executable(np.array(p), np.array(x, object), np.array(w, object))[0].tolist() for p in (True, False)]
        assert found == [x, w]


def test_branches_return_what_is_made_of_strings_around_them() -> None:
    """The strings are joined before the branch, whichever runs."""
    executable = tilework.compile(chosen("{ a = StringConcat(x, x) }", "{ b = Identity(x) }", ", string[n] x"))
    for x in (["q", "r"], ["q"], []):
        found = [executable(np.array(p), np.array(x, object))[0].tolist() for p in (True, False)]
        assert found == [[text * 2 for text in x], x]


def test_what_a_branch_makes_of_strings_from_outside_is_refused() -> None:
    proto = chosen('<string[1] k = {"k"}> { a = Concat<axis=0>(x, k) }', "{ b = Identity(x) }", ", string[n] x")
    assert codes_of(proto) == {1115}
    with pytest.raises(FrontendError, match=r"returns 'a' .*made in it of strings"):
        tilework.compile(proto)


def test_branches_return_strings_of_two_sizes() -> None:
    """Sizes that are taken to be equal where they may be; a call with others has code of its own."""
    executable = tilework.compile(chosen("{ a = Identity(x) }", "{ b = Identity(w) }", ", string[n] x, string[m] w"))
    for x, w in ((["q", "r"], ["s", "t"]), (["q", "r"], ["s"]), (["q"], ["r", "s", "t"]), ([], ["r"]), (["q"], [])):
        found = [executable(np.array(p), np.array(x, object), np.array(w, object))[0].tolist() for p in (True, False)]
        assert found == [x, w]


@pytest.mark.parametrize("how", ["state", "row"])
def test_strings_that_a_loop_would_carry_are_refused_by_their_names(how: str) -> None:
    node = "y = Loop(n, t, x)<body: graph = b (int64 i, bool c, string[?] s) => (bool d, string[?] r) "
    body = "{ d = Identity(c) r = Identity(s) }>"
    if how == "row":
        node = "y = Scan<num_scan_inputs = 1, body: graph = b (string s) => (string r) "
        body = "{ r = Identity(s) }>(x)"
    proto = onnx.parser.parse_model(
        f"{HEAD} g (string[k] x, int64 n) => (string[?] y) <bool t = {{1}}> {{ {node} {body} }}"
    )
    with pytest.raises(FrontendError, match=r"input . of the (Loop|Scan), 'x', is string") as refused:
        tilework.compile(proto)
    assert refused.value.code == 1115


def test_rows_of_a_loop_are_strings() -> None:
    made = "d = Identity(c) t = Add(s, i) r = Reshape(i, u) w = Gather(q, r)"
    held = 'string[3] q = {"a", "b", "c"}, int64[1] u = {-1}'
    body = f"graph = b(int64 i, bool c, int64 s) => (bool d, int64 t, string[1] w) <{held}> {{ {made} }}"
    executable = compiled(f"g (int64 n) => (string[?,?] y) <int64 z = {{0}}> {{ k, y = Loop(n, , z) <body: {body}> }}")
    assert executable(np.array(3))[0].tolist() == [["a"], ["b"], ["c"]]
    assert executable(np.array(0))[0].shape == (0, 1)
