"""A double of each protocol, and that explanations are what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.plan.building import plan_of
from tilework.dims import dim
from tilework.plan.explanation import BlackBoxExplanation, CopyExplanation, Explanation, Notice, RegionExplanation
from tilework.plan.interpret import interpret_plan
from tilework.plan.protocols import Allocator, Array, BlackBox, Cost, CostSource, Specialiser
from tilework.plan.steps import BlackBoxStep


class Negate:
    identity = "negate"
    operator = "Neg"
    provider = "numpy"
    reason = "to have a double"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return [-inputs[0]]


class Heap:
    def __init__(self) -> None:
        self.blocks: dict[int, Array] = {}

    def allocate(self, size: int, alignment: int, space: str) -> int:
        if space != "host":
            raise MemoryError(space)
        block = np.empty(size + alignment, np.uint8)
        address = -(-block.ctypes.data // alignment) * alignment
        self.blocks[address] = block
        return address

    def release(self, address: int) -> None:
        del self.blocks[address]


class Counting:
    def __init__(self) -> None:
        self.seen: dict[tuple[tuple[str, int], ...], int] = {}

    def specialise(self, symbols: Mapping[str, int]) -> str | None:
        key = tuple(sorted(symbols.items()))
        self.seen[key] = self.seen.get(key, 0) + 1
        return f"for {key}" if self.seen[key] > 1 else None


class Table:
    def cost(self, choice: str) -> Cost | None:
        return Cost(len(choice) * 1e-6, "predicted", "latency") if choice else None


def test_doubles() -> None:
    box: BlackBox = Negate()
    plan = plan_of((BlackBoxStep("b", box, ("x",), ("y",)),), ())
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(interpret_plan(plan, [x])[0], -x)
    heap = Heap()
    allocator: Allocator = heap
    address = allocator.allocate(100, 64, "host")
    assert address % 64 == 0
    allocator.release(address)
    assert heap.blocks == {}
    specialiser: Specialiser[str] = Counting()
    assert specialiser.specialise({"n": 3}) is None
    assert specialiser.specialise({"n": 3}) == "for (('n', 3),)"
    source: CostSource[str] = Table()
    assert source.cost("") is None
    assert source.cost("ab") == Cost(2e-6, "predicted", "latency")


def test_explanations() -> None:
    found = Explanation(
        "model",
        regions=(RegionExplanation("r0", ("Gemm", "Relu"), "direct", ("k0",), flops=dim("n") * 2),),
        black_boxes=(BlackBoxExplanation("s1", "NonMaxSuppression", "onnx.reference", "no definition"),),
        copies=(CopyExplanation("s2", dim("n") * 4, "the input is not contiguous"),),
        notices=(Notice("padded-bucket", "3 of 16 rows are padding"), Notice("slow", "one thread", warning=True)),
        code_bytes=120,
        compile_milliseconds=(("fuse", 1.5), ("codegen", 20.0)),
    )
    assert [notice.identifier for notice in found.warnings] == ["slow"]
    assert found.total_milliseconds == 21.5
    text = str(found)
    for words in (
        "Gemm, Relu",
        "NonMaxSuppression",
        "4*n bytes",
        "note padded-bucket",
        "warning slow",
        "codegen: 20.0 ms",
    ):
        assert words in text
