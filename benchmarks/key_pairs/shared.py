"""Thirty pairs of compilations that must share the code of their kernel, or all of a model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from benchmarks.key_pairs.building import Drawn, model, node
from benchmarks.key_pairs.compiling import Used, recorded, results_of
from benchmarks.key_pairs.pairs import Bench, Level, Pair, Side, environment
from tilework.runtime.context import ContextOptions

Made = Callable[[Drawn], ModelProto]


def _of(made: Made, **settings: Any) -> Side:
    return lambda bench: bench.compiled(made(bench.drawn), **settings)


def _two(name: str, first: Made, second: Made, *, same_results: bool = True) -> Pair:
    return Pair(name, "shared", _of(first), _of(second), same_results=same_results)


def _product(**more: Any) -> Made:
    return lambda d: d.product(np.ones((d.k, d.n), np.float32), **more)


def _renamed(d: Drawn) -> ModelProto:
    held = {"weights of a layer": np.ones((d.k, d.n), np.float32)}
    first = node("MatMul", ["an input", "weights of a layer"], "a result", name="a node")
    return model([first], {"an input": [d.m, d.k]}, held, outputs=["a result"])


def _described(d: Drawn) -> ModelProto:
    made = _product()(d)
    made.producer_name, made.doc_string = "somebody", "something"
    helper.set_model_props(made, {"author": "nobody"})
    return made


def _as_node(d: Drawn) -> ModelProto:
    held = numpy_helper.from_array(np.ones((d.k, d.n), np.float32))
    return model([node("Constant", [], "w", value=held), node("MatMul", ["x", "w"])], {"x": [d.m, d.k]})


def _as_floats(d: Drawn) -> ModelProto:
    made = _product()(d)
    count = d.k * d.n
    made.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [d.k, d.n], [1.0] * count))
    return made


def _with_identity(d: Drawn) -> ModelProto:
    nodes = [node("Identity", ["x"], "z"), node("MatMul", ["z", "w"])]
    return model(nodes, {"x": [d.m, d.k]}, {"w": np.ones((d.k, d.n), np.float32)})


def _with_dropout(d: Drawn) -> ModelProto:
    nodes = [node("Dropout", ["x"], "z"), node("MatMul", ["z", "w"])]
    return model(nodes, {"x": [d.m, d.k]}, {"w": np.ones((d.k, d.n), np.float32)})


def _with_dead_code(d: Drawn) -> ModelProto:
    return model([node("Sin", ["x"], "unused"), node("MatMul", ["x", "w"])], {"x": [d.m, d.k]},
                 {"w": np.ones((d.k, d.n), np.float32), "v": np.ones(3, np.float32)})  # fmt: skip


def _two_steps(turned: bool) -> Made:
    def made(d: Drawn) -> ModelProto:
        nodes = [node("Tanh", ["x"], "t"), node("Abs", ["x"], "u"), node("Mul", ["t", "u"])]
        return model([nodes[1], nodes[0], nodes[2]] if turned else nodes, {"x": [d.m, d.n]})

    return made


def _free(symbol: str) -> Made:
    return lambda d: d.elementwise(extents=[symbol, d.n])


def _softmax(axis: int) -> Made:
    return lambda d: d.elementwise("Softmax", axis=axis)


def _gemm(**attributes: Any) -> Made:
    def made(d: Drawn) -> ModelProto:
        held = {"w": np.ones((d.k, d.n), np.float32), "b": np.ones(d.n, np.float32)}
        return model([node("Gemm", ["x", "w", "b"], **attributes)], {"x": [d.m, d.k]}, held)

    return made


def _followed(d: Drawn) -> ModelProto:
    nodes = [node("MatMul", ["x", "w"], "z"), node("Softmax", ["z"], axis=0)]
    return model(nodes, {"x": [d.m, d.k]}, {"w": np.ones((d.k, d.n), np.float32)})


def _first_of_both(bench: Bench) -> Used:
    """A model with a kernel more: only the one that it begins with is looked at."""
    used = bench.compiled(_followed(bench.drawn))
    alone = used.kernels - used.written
    return Used(alone, frozenset(), frozenset(), found_model=False, results="")


def _beside_its_data(bench: Bench) -> Used:
    import onnx

    path = bench.folder / "apart" / "model.onnx"
    path.parent.mkdir()
    onnx.save_model(_product()(bench.drawn), path, save_as_external_data=True, location="data", size_threshold=0)
    return bench.compiled(path)


def _through_a_link(bench: Bench) -> Used:
    link = bench.folder / "link.onnx"
    link.symlink_to(bench.folder / "model.onnx")
    return bench.compiled(link)


def _file(name: str = "model.onnx") -> Side:
    return lambda bench: bench.compiled(bench.file(_product()(bench.drawn), name))


def _elsewhere(**more: Any) -> Side:
    return lambda bench: bench.elsewhere(bench.file(_product()(bench.drawn)), **more)


def _from_a_copy(bench: Bench) -> Used:
    import tilework

    place = bench.folder / "sources"
    shutil.copytree(Path(tilework.__file__).parent, place / "tilework", ignore=shutil.ignore_patterns("__pycache__"))
    return bench.elsewhere(bench.file(_product()(bench.drawn)), package=place)


def _in_the_folder(bench: Bench) -> Used:
    return bench.elsewhere(bench.file(_product()(bench.drawn)), folder=bench.folder)


def _with_variable(variable: str, value: str) -> Side:
    def side(bench: Bench) -> Used:
        with environment(**{variable: value}):
            return bench.compiled(_product()(bench.drawn))

    return side


def _threads(count: int) -> Side:
    return lambda bench: bench.compiled(_product()(bench.drawn), ContextOptions(threads=count))


def _called_with(strided: bool) -> Side:
    """A call with an array whose axis of one element has another stride: that compiles nothing."""

    def side(bench: Bench) -> Used:
        import tilework

        context, recorder = recorded()
        d = bench.drawn
        executable = tilework.compile(d.elementwise(extents=["free", d.n]), context=context)
        array = np.arange(2 * d.n, dtype=np.float32).reshape(2, d.n)
        given = array[::2] if strided else np.ascontiguousarray(array[:1])
        assert given.shape == (1, d.n)
        executable(given)
        used = Used(frozenset(recorder.kernels), frozenset(recorder.made), frozenset(), not recorder.kernels,
                    results_of(executable))  # fmt: skip
        context.close()
        return used

    return side


def _pair(name: str, first: Side, second: Side, level: Level = "kernel") -> Pair:
    return Pair(name, "shared", first, second, level)


PAIRS: tuple[Pair, ...] = (
    _two("another name of the graph", _product(), _product(name="other")),
    _two("other names of inputs, weights, nodes and outputs", _product(), _renamed),
    _two("another producer, description and author", _product(), _described),
    _two("other weights of the same shape", lambda d: d.product(), lambda d: d.product(), same_results=False),
    _two("other weights of a convolution", lambda d: d.convolution(), lambda d: d.convolution(), same_results=False),
    _two("operands in another order", lambda d: d.binary("Sub"), lambda d: d.binary("Sub", ("b", "a")),
         same_results=False),
    _two("weights in a node of their own", _product(), _as_node),
    _two("weights written as numbers, not bytes", _product(), _as_floats),
    _two("an Identity before it", _product(), _with_identity),
    _two("a Dropout before it", _product(), _with_dropout),
    _two("nodes and weights that nothing uses", _product(), _with_dead_code),
    _two("nodes in another order", _two_steps(turned=False), _two_steps(turned=True)),
    _two("another version of the format", _product(), _product(ir=8)),
    _two("another version of the operators", _product(), _product(opset=17)),
    _two("another name of a free extent", _free("batch"), _free("N")),
    _two("an axis counted from the end", _softmax(1), _softmax(-1)),
    _two("attributes that say what is so anyway", _gemm(), _gemm(alpha=1.0, beta=1.0, transA=0, transB=0)),
    _two("padding by its name", lambda d: d.convolution(np.ones((d.channels, d.channels, 3, 3)).astype("f"),
                                                        pads=[1, 1, 1, 1]),
         lambda d: d.convolution(np.ones((d.channels, d.channels, 3, 3)).astype("f"), auto_pad="SAME_UPPER")),
    Pair("the kernel that a larger model begins with", "shared", _of(_product()), _first_of_both, same_results=False),
    _pair("extents fixed by the call of compile", _of(lambda d: d.elementwise()),
          lambda b: b.compiled(_free("batch")(b.drawn), shapes={"x": (b.drawn.m, b.drawn.n)})),
    _pair("a limit of memory", _of(_product()), _of(_product(), memory_limit=1 << 30)),
    _pair("another path", _file(), _file("elsewhere/other.onnx"), "model"),
    _pair("through a link", _file(), _through_a_link, "model"),
    _pair("weights in a file beside it", _file(), _beside_its_data),
    _pair("2 threads, not 1", _threads(1), _threads(2), "model"),
    _pair("3 threads by the environment", _with_variable("TILEWORK_NUM_THREADS", "1"),
          _with_variable("TILEWORK_NUM_THREADS", "3"), "model"),
    _pair("another stride of an axis of 1", _called_with(strided=False), _called_with(strided=True)),
    _pair("a process on one processor, of another hash seed",
          _elsewhere(variables={"PYTHONHASHSEED": "1"}), _elsewhere(variables={"PYTHONHASHSEED": "2"}, processors=1),
          "model"),
    _pair("another working folder, language and home", _elsewhere(variables={"HOME": "/", "LANG": "C"}), _in_the_folder,
          "model"),
    _pair("the same sources in another folder", _elsewhere(), _from_a_copy, "model"),
)  # fmt: skip
"""Sides are run in order; a second one may use the files that the first wrote."""
