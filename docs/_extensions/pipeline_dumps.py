"""What each stage of the compiler makes of one small network: texts that the pages of the pipeline show.

The network is compiled when the documentation is built, for one machine wherever that is, so the pages show what the
compiler does now.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework import dtypes
from tilework.compiler.compile import Compiled, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.compute.text import computation_text
from tilework.dims import Symbol
from tilework.graph.graph import Graph
from tilework.graph.text import to_text
from tilework.loops.text import program_text
from tilework.ops.builder import GraphBuilder
from tilework.plan.text import plan_text

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).resolve().parents[1] / "generated" / "pipeline"
MACHINE = "x86-64-v3"
BLOCK_LINES = 32
"""Lines of a block of LLVM text that are shown."""


def network() -> Graph:
    """softmax(maximum((x · w + b) * 1, 0)) over [N, 64]; the product with 1 is there to be removed."""
    generator = np.random.default_rng(0)
    builder = GraphBuilder("dense")
    builder.symbol(Symbol("N"))
    x = builder.input("x", dtypes.float32, "N", 64)
    w = builder.constant(generator.standard_normal((64, 16), np.float32), "w")
    b = builder.constant(generator.standard_normal(16, np.float32), "b")
    product = builder.apply(
        "dot_general", x, w, lhs_batching_dimensions=(), rhs_batching_dimensions=(), lhs_contracting_dimensions=(1,),
        rhs_contracting_dimensions=(0,),
    )  # fmt: skip
    scaled = builder.apply("multiply", builder.apply("add", product, b), builder.constant(1.0, dtype=dtypes.float32))
    hidden = builder.apply("maximum", scaled, builder.constant(0.0, dtype=dtypes.float32))
    return builder.build([builder.apply("softmax", hidden, dimension=1)])


def _products(module: str) -> str:
    """The block of a module's text in which the products are summed, cut off where it is long."""
    blocks = re.split(r"^(?=[\w.]+:$)", module, flags=re.MULTILINE)
    lines = max(blocks, key=lambda block: block.count("@llvm.fma")).splitlines()
    more = len(lines) - BLOCK_LINES
    return "\n".join([*lines[:BLOCK_LINES], f"  ; {more} lines more"] if more > 0 else lines) + "\n"


def _regions(compiled: Compiled) -> str:
    lines: list[str] = []
    for kernel in compiled.kernels:
        region = kernel.region
        lines.append(f"region {region.name}: {', '.join(region.operators)}")
        lines.append(f"  inputs {', '.join(value.name for value in region.inputs)}")
        lines.append(f"  outputs {', '.join(value.name for value in region.outputs)}")
        lines.append(f"  {kernel.candidate.algorithm} by {kernel.candidate.recipe}: {kernel.candidate.note}")
    return "\n".join(lines) + "\n"


def dumps() -> dict[str, str]:
    """The texts by name."""
    graph = network()
    compiled = lower_graph(graph, CompileOptions(machine=MACHINE))
    first = compiled.kernels[0]
    definition = first.closed.region.definition
    return {
        "imported": to_text(graph),
        "simplified": to_text(compiled.graph),
        "regions": _regions(compiled),
        "definition": computation_text(definition.computation),
        "plain": program_text(definition.program),
        "trace": "".join(f"{step}\n" for step in first.schedule.trace),
        "loops": program_text(first.program),
        "llvm": _products(first.kernel.ir),
        "plan": plan_text(compiled.plan).split("\nkernel ")[0] + "\n",
    }


def write_dumps(app: Sphinx) -> None:
    """Write each text under docs/generated/pipeline, leaving an unchanged one as it is."""
    del app
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in dumps().items():
        path = FOLDER / f"{name}.txt"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_dumps)
    return {"parallel_read_safe": True}
