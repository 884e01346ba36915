"""Thirty pairs of compilations that must not share code, or not all of a model."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from benchmarks.key_pairs.building import Drawn, model, node
from benchmarks.key_pairs.compiling import Used, recorded
from benchmarks.key_pairs.pairs import Bench, Level, Pair, Side
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.frontends.compile import lower
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine as machine_named
from tilework.numerics import numerics

Made = Callable[[Drawn], ModelProto]
AGED = 60.0
"""Seconds by which a changed source is older than the process that reads it: younger ones are not kept."""


def _of(made: Made, **settings: Any) -> Side:
    return lambda bench: bench.compiled(made(bench.drawn), **settings)


def _two(name: str, first: Made, second: Made) -> Pair:
    return Pair(name, "apart", _of(first), _of(second))


def _pair(name: str, first: Side, second: Side, level: Level = "kernel") -> Pair:
    return Pair(name, "apart", first, second, level)


def _sum(element: int) -> Made:
    return lambda d: d.binary("Add", element=element)


def _elementwise(operator: str, **attributes: Any) -> Made:
    return lambda d: d.elementwise(operator, **attributes)


def _convolution(**attributes: Any) -> Made:
    return lambda d: d.convolution(**attributes)


def _pooling(**attributes: Any) -> Made:
    return lambda d: d.pooling(**attributes)


def _extents(*more: int | str) -> Made:
    return lambda d: d.elementwise(extents=[*more, d.n])


def _reduced(operator: str, axis: int) -> Made:
    def made(d: Drawn) -> ModelProto:
        return model([node(operator, ["x", "axes"])], {"x": [d.m, d.n, d.k]}, {"axes": np.array([axis])})

    return made


def _slice(start: int, step: int) -> Made:
    def made(d: Drawn) -> ModelProto:
        held = {"from": np.array([start]), "to": np.array([start + 5 * step]), "axes": np.array([1]),
                "step": np.array([step])}  # fmt: skip
        nodes = [node("Slice", ["x", *held], "z"), node("Tanh", ["z"])]
        return model(nodes, {"x": [d.m, d.side + 8]}, held)

    return made


def _turned(turned: bool) -> Made:
    """The same product, of an array `[k, m]` read in the other order."""

    def made(d: Drawn) -> ModelProto:
        held = {"w": np.ones((d.k, d.n), np.float32)}
        if not turned:
            return model([node("MatMul", ["x", "w"])], {"x": [d.m, d.k]}, held)
        return model([node("Gemm", ["x", "w"], transA=1)], {"x": [d.k, d.m]}, held)

    return made


def _clip(high: float) -> Made:
    def made(d: Drawn) -> ModelProto:
        held = {"low": np.float32(0), "high": np.float32(high)}
        return model(
            [node("Clip", ["x", "low", "high"])], {"x": [d.m, d.n]}, {k: np.asarray(v) for k, v in held.items()}
        )

    return made


def _normalised(epsilon: float) -> Made:
    def made(d: Drawn) -> ModelProto:
        held = {"w": np.ones(d.n, np.float32)}
        return model([node("LayerNormalization", ["x", "w"], epsilon=epsilon)], {"x": [d.m, d.n]}, held)

    return made


# -- sides that take more than a model ---------------------------------------------------------------------------------
def _product(d: Drawn) -> ModelProto:
    return d.product(np.ones((d.k, d.n), np.float32))


def _for_machine(target: CpuMachine | str, *, text_of: str = "host") -> Side:
    """Code for a machine that may not be this one: lowered, generated and kept, never run."""

    def side(bench: Bench) -> Used:
        chosen = machine_named(target) if isinstance(target, str) else target
        context, recorder = recorded()
        for text in lower(_product(bench.drawn), machine=text_of).llvm:
            context.jit.compile_object(text, chosen)
        context.close()
        return Used(frozenset(recorder.kernels), frozenset(recorder.made), frozenset(), found_model=False, results="")

    return side


def _without(feature: str) -> CpuMachine:
    v3 = machine_named("x86-64-v3")
    return replace(v3, features=v3.features.replace(f"+{feature}", f"-{feature}"))


def _streaming(streams: bool) -> Side:
    """One loop program whose stores take lines of 64 bytes for granted, or do not."""

    def side(bench: Bench) -> Used:
        kernel = lower(bench.drawn.elementwise("Neg", [4, 1 << 22])).kernels[0]
        result = kernel.program.arguments[-1].buffer.name
        text = emit_kernel(
            kernel.program, machine_named("host"), numerics("default"), name=kernel.kernel.name,
            streaming=frozenset({result} if streams else ()),
        )  # fmt: skip
        context, recorder = recorded()
        context.jit.compile_object(text.ir)
        context.close()
        return Used(frozenset(recorder.kernels), frozenset(recorder.made), frozenset(), found_model=False, results="")

    return side


def _by(part: str, value: str) -> Side:
    """The code of a product, made by another LLVM or in another way, as the key says."""

    def side(bench: Bench) -> Used:
        from tilework.runtime import kept_objects

        context, recorder = recorded()
        before = kept_objects._GENERATION  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if part == "llvm":
            recorder.__dict__["_llvm"] = value  # the cached property's place
        try:
            if part == "generation":
                kept_objects._GENERATION = value  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            for text in lower(_product(bench.drawn)).llvm:
                context.jit.compile_object(text)
        finally:
            kept_objects._GENERATION = before  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        context.close()
        return Used(frozenset(recorder.kernels), frozenset(recorder.made), frozenset(), found_model=False, results="")

    return side


def _file(bench: Bench) -> Path:
    return bench.file(_product(bench.drawn))


def _changed_sources(change: Callable[[Path], None]) -> Side:
    """A process with sources of its own, changed."""

    def side(bench: Bench) -> Used:
        import tilework

        place = bench.folder / f"sources{len(list(bench.folder.iterdir()))}"
        package = place / "tilework"
        shutil.copytree(Path(tilework.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
        change(package)
        then = time.time() - AGED
        for path in package.rglob("*.py"):
            os.utime(path, (then, then))
        return bench.elsewhere(_file(bench), package=place)

    return side


def _as_it_is(package: Path) -> None:
    pass


def _version(package: Path) -> None:
    path = package / "version.py"
    text = path.read_text()
    changed = text.replace('__version__ = "', '__version__ = "9')
    if changed == text:
        raise RuntimeError("there is no version in version.py")
    path.write_text(changed)


def _one_line(package: Path) -> None:
    path = package / "decisions" / "choice.py"
    path.write_text(path.read_text() + "# a line more\n")


def _with_data(fill: float) -> Side:
    """A model whose weights lie in a file beside it: the model's own bytes stay what they are."""

    def side(bench: Bench) -> Used:
        import onnx

        path = bench.folder / "apart" / "model.onnx"
        path.parent.mkdir(exist_ok=True)
        (path.parent / "data").unlink(missing_ok=True)
        made = bench.drawn.product(np.full((bench.drawn.k, bench.drawn.n), fill, np.float32))
        onnx.save_model(made, path, save_as_external_data=True, location="data", size_threshold=0)
        return bench.compiled(path)

    return side


PAIRS: tuple[Pair, ...] = (
    _two("float32 and float64", _sum(TensorProto.FLOAT), _sum(TensorProto.DOUBLE)),
    _two("float32 and float16", _sum(TensorProto.FLOAT), _sum(TensorProto.FLOAT16)),
    _two("int32 and int64", _sum(TensorProto.INT32), _sum(TensorProto.INT64)),
    _two("int8 and uint8", _sum(TensorProto.INT8), _sum(TensorProto.UINT8)),
    _two("another operator", _elementwise("Floor"), _elementwise("Ceil")),
    _two("another extent", _extents(11), _extents(12)),
    _two("a free extent and a fixed one", _extents(8), _extents("batch")),
    _two("another stride of the input", _turned(turned=False), _turned(turned=True)),
    _two("another step of a slice", _slice(1, 1), _slice(1, 2)),
    _two("another axis of a reduction", _reduced("ReduceMax", 1), _reduced("ReduceMax", 2)),
    _two("an attribute of one operator", _elementwise("LeakyRelu", alpha=0.1), _elementwise("LeakyRelu", alpha=0.2)),
    _two("a limit that is a constant", _clip(6.0), _clip(1.0)),
    _two("an epsilon", _normalised(1e-5), _normalised(1e-6)),
    _two("strides of a convolution", _convolution(), _convolution(strides=[2, 2])),
    _two("padding of a convolution", _convolution(), _convolution(pads=[1, 1, 1, 1])),
    _two("dilation of a convolution", _convolution(), _convolution(dilations=[2, 2])),
    _two("groups of a convolution", _convolution(), _convolution(group=2)),
    _two("the window of a maximum", _pooling(kernel_shape=[2, 2]), _pooling(kernel_shape=[3, 3])),
    _pair("strict numerics", _of(_product), _of(_product, numerics="strict")),
    _pair("a checked build", _of(_product), _of(_product, checked=True)),
    _pair("alignment assumed", _streaming(streams=False), _streaming(streams=True)),
    _pair("a processor without fused multiply-add", _for_machine("x86-64-v3", text_of="x86-64-v3"),
          _for_machine(_without("fma"), text_of="x86-64-v3")),
    _pair("another processor of the architecture", _for_machine("x86-64-v3", text_of="x86-64-v3"),
          _for_machine("x86-64-v4", text_of="x86-64-v4")),
    _pair("another architecture", _for_machine("x86-64-v3", text_of="x86-64-v3"),
          _for_machine("aarch64", text_of="aarch64")),
    _pair("another LLVM", _by("llvm", "llvmlite 0"), _by("llvm", "llvmlite 1")),
    _pair("another way of generating code", _by("generation", "level 3"), _by("generation", "level 2")),
    _pair("weights, for the whole model", _of(_product), _of(partial(Drawn.product)), "model"),
    _pair("weights in a file beside it", _with_data(1.0), _with_data(2.0), "model"),
    _pair("another version of Tilework", _changed_sources(_as_it_is), _changed_sources(_version), "model"),
    _pair("another line in its sources", _changed_sources(_as_it_is), _changed_sources(_one_line), "model"),
)  # fmt: skip
