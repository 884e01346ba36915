"""The registry finds every operator, and the builder makes graphs that verify."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.dims import Symbol, dim
from tilework.errors import GraphError, UsageError, VerificationError
from tilework.graph.graph import Value
from tilework.graph.types import TokenType, tensor
from tilework.ops.builder import GraphBuilder
from tilework.ops.registry import FAMILIES, has_operator, operator, operator_names
from tilework.ops.verify import verify
from tilework.variants import list_variants

F32 = dtypes.float32


@pytest.mark.parametrize("name", operator_names())
def test_every_operator_is_found_by_its_name(name: str) -> None:
    found = operator(name)
    assert found.name == name
    assert operator(name) is found
    assert type(found).__doc__


def test_names_are_unique_and_files_follow_them() -> None:
    files = [file for family in FAMILIES for file in list_variants(f"tilework.ops.{family}")]
    assert len(files) == len(set(files)) == len(operator_names())
    assert all(file.endswith("_") == keyword.iskeyword(file.removesuffix("_")) for file in files)
    assert {"add", "not", "if", "reshape", "random_bits"} <= set(operator_names())
    assert has_operator("and")
    assert not has_operator("and_")


def test_an_unknown_operator_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        operator("reshap")
    assert caught.value.code == 1227
    assert "reshape" in str(caught.value)


def test_building() -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x = builder.input("x", F32, "N", 4)
    y = builder.apply("add", x, builder.constant([1, 2, 3, 4], dtype=F32), location="first")
    z = builder.apply("add", y, "x", names="z")
    r = builder.apply_one("reshape", z, shape=[dim("N") * 4, np.int64(1)])
    graph = builder.build([r, z])
    verify(graph)
    assert [node.name for node in graph.nodes] == ["add", "z", "reshape"]
    assert (y, builder.type_of("z")) == (Value("add", tensor(F32, "N", 4)), tensor(F32, "N", 4))
    assert graph.nodes[0].location == "first"
    assert builder.constant_value("constant") is graph.constants[0].array
    assert builder.constant_value(x) is None
    assert not graph.constants[0].array.flags.writeable


def test_names_are_fresh() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", F32)
    names = [builder.apply_one("abs", x).name for _ in range(3)]
    assert names == ["abs", "abs_1", "abs_2"]
    assert builder.fresh("") not in ("", "x")
    inner = builder.subgraph("inner")
    assert inner.apply_one("abs", x).name == "abs_3"
    assert builder.apply_one("abs", x).name == "abs_4"
    assert inner.build([]).symbols == ()
    for taken in ("x", ""):
        with pytest.raises(GraphError) as caught:
            builder.apply("abs", x, names=[taken])
        assert caught.value.code == 1203


def test_faults_of_building() -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x = builder.input("x", F32, 2)
    with pytest.raises(VerificationError) as caught:
        builder.apply("add", x, builder.input("i", dtypes.int8, 3), location="the user's node")
    assert [fault.code for fault in caught.value.faults] == [1222, 1223]
    assert "the user's node (add)" in str(caught.value)
    for code, act in (
        (1205, lambda: builder.apply("abs", "nowhere")),
        (1205, lambda: builder.build(["nowhere"])),
        (1208, lambda: builder.symbol(Symbol("N", 3))),
        (1220, lambda: builder.apply("abs", x, names=["a", "b"])),
    ):
        with pytest.raises(GraphError) as refused:
            act()
        assert refused.value.code == code
    assert builder.symbol(Symbol("N")) == Symbol("N")
    assert builder.build([]).nodes == ()


def test_tokens_and_several_results() -> None:
    builder = GraphBuilder("g")
    token, bits = builder.apply(
        "random_bits", builder.token(), builder.constant([0, 0], dtype=dtypes.uint64),
        builder.constant(np.zeros(1, np.uint64)), shape=(2,), dtype=dtypes.uint64, names=["after", "bits"],
    )  # fmt: skip
    assert isinstance(token.type, TokenType)
    assert bits.name == "bits"
    graph = builder.build([bits, token])
    verify(graph)
    assert graph.nodes[0].name == "after"


def test_constants_are_copied_unless_nothing_can_write_to_them(tmp_path: Path) -> None:
    whole = np.arange(6, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(whole.tobytes())
    frozen, view = whole.copy(), whole[:3]
    frozen.flags.writeable = view.flags.writeable = False
    turned = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    turned.flags.writeable = False
    odd = np.frombuffer(b"\0" + whole.tobytes(), np.float32, offset=1)
    mapped = np.memmap(tmp_path / "w.bin", np.uint8, "r")
    given: dict[str, tuple[Any, bool]] = {
        "bytes": (np.frombuffer(whole.tobytes(), np.float32), False), "frozen": (frozen, False),
        "mapped": (np.frombuffer(mapped, np.float32).reshape(2, 3), False), "own": (whole, True), "view": (view, True),
        "turned": (turned, True), "odd": (odd, True), "number": (3.0, True),
        "bytearray": (np.frombuffer(bytearray(whole.tobytes()), np.float32), True),
        "private": (np.memmap(tmp_path / "w.bin", np.float32, "c"), True),
    }  # fmt: skip
    for name, (array, copied) in given.items():
        builder = GraphBuilder("g")
        held = builder.constant_value(builder.constant(array))
        assert held is not None
        np.testing.assert_array_equal(held, array)
        assert not held.flags.writeable
        assert held.flags.c_contiguous
        assert np.shares_memory(held, array) != copied, name
    builder = GraphBuilder("g")
    held = builder.constant_value(builder.constant(frozen, dtype=dtypes.int32))
    assert held is not None
    assert held.dtype == np.int32
