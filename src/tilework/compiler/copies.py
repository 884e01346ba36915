"""What `explain()` tells of concatenations and slices that are copied after all."""

from __future__ import annotations

from collections.abc import Iterator

from tilework.candidates.region import Region
from tilework.compiler.blocks import Block
from tilework.plan.explanation import CopyExplanation

ELSEWHERE = "the operand is needed in other memory as well"


def copies(block: Block) -> Iterator[CopyExplanation]:
    """Copies by kernels for one concatenation or slice, and of single operands into a concatenation."""
    for inner in block.blocks():
        windows, values = inner.windows, inner.graph.values
        for item in inner.items:
            if isinstance(item, Region) and item.root.name in windows.reasons:
                copied = item.root.output.tensor.bytes
                for value in item.there.values():
                    copied = copied - value.tensor.bytes
                yield CopyExplanation(item.name, copied, windows.reasons[item.root.name])
        for result, operands in windows.joined.items():
            for operand in operands:
                yield CopyExplanation(f"{operand.whole} to {result}", values[operand.whole].tensor.bytes, ELSEWHERE)
