"""Attention: recognised in graphs, computed over blocks of keys, with the values of the softmax of whole rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilework
from tilework.algorithms.attention import attention_of
from tilework.algorithms.online_softmax import online_softmax
from tilework.candidates.region import region_of
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.decisions import attention as decision
from tilework.frontends.compile import load_graph
from tilework.loops.interpret import interpret
from tilework.loops.verify import verify
from tilework.machine.finder import machine
from tilework.numerics import Level, numerics
from tilework.passes.pipeline import Pipeline
from tilework.recipes.cpu.online_attention import Blocks, blocks_of, scheduled
from tilework.runtime.context import ContextOptions

Array = np.ndarray[Any, np.dtype[Any]]
Nodes = list[onnx.NodeProto]
node = helper.make_node
ONLINE = "online softmax"


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attention is large."""
    monkeypatch.setattr(decision, "NEAR", 0)


def model(
    nodes: Nodes, inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None, *, opset: int = 18,
    free: Mapping[str, Mapping[int, str]] | None = None,
) -> onnx.ModelProto:  # fmt: skip
    """A model with one output `o`; `free` names dimensions of inputs."""

    def declared(name: str, array: Array) -> onnx.ValueInfoProto:
        names = (free or {}).get(name, {})
        shape = [names.get(d, extent) for d, extent in enumerate(array.shape)]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)

    kind = helper.np_dtype_to_tensor_dtype(inputs["q"].dtype)
    graph = helper.make_graph(
        nodes, "attention", [declared(*entry) for entry in inputs.items()],
        [helper.make_tensor_value_info("o", kind, None)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def product_softmax_product(scale: float, dtype: Any, mask: bool = False) -> tuple[Nodes, dict[str, Array]]:
    """The usual five or six nodes."""
    nodes = [
        node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "t"], ["s"]),
        node("Mul", ["s", "scale"], ["x"]),
    ]
    if mask:
        nodes.append(node("Add", ["x", "m"], ["y"]))
    last = "y" if mask else "x"
    nodes += [node("Softmax", [last], ["p"], axis=-1), node("MatMul", ["p", "v"], ["o"])]
    return nodes, {"scale": np.array(scale, dtype)}


def operands(random: np.random.Generator, batch: tuple[int, ...], sizes: tuple[int, int, int, int], dtype: Any = "f4"):
    queries, keys, depth, columns = sizes
    shapes = {"q": (*batch, queries, depth), "k": (*batch, keys, depth), "v": (*batch, keys, columns)}
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def expected(inputs: Mapping[str, Array], scale: float, mask: Array | None = None) -> Array:
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    with np.errstate(all="ignore"):
        scores = np.matmul(q, k.swapaxes(-1, -2)) * scale
        if mask is not None:
            scores = scores + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.matmul(weights / weights.sum(axis=-1, keepdims=True), v)


def compiled(given: onnx.ModelProto, *, threads: int = 2, **options: Any) -> Any:
    return tilework.compile(given, context=tilework.Context(ContextOptions(threads=threads)), **options)


def run(executable: Any, inputs: Mapping[str, Array]) -> Array:
    (found,) = executable(*inputs.values())
    return np.asarray(found)


def algorithms(given: onnx.ModelProto, level: Level = "default") -> list[str]:
    """The algorithm of each kernel."""
    return [k.candidate.algorithm for k in lower_graph(load_graph(given), CompileOptions(numerics=level)).kernels]


def same(found: Array, wanted: Array) -> None:
    assert found.shape == wanted.shape
    tolerance = 1e-13 if found.dtype == np.float64 else 4e-6
    assert (np.isnan(found) == np.isnan(wanted)).all()
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("case", range(8))
def test_random_shapes(case: int, small_caches: None) -> None:
    random = np.random.default_rng(300 + case)
    dtype = np.float64 if case % 4 == 3 else np.float32
    batch = tuple(int(n) for n in random.integers(1, 4, 2))
    sizes = int(random.integers(32, 200)), int(random.integers(1, 400)), *map(int, random.integers(2, 80, 2))
    inputs: dict[str, Array] = operands(random, batch, (sizes[0], sizes[1], sizes[2], sizes[3]), dtype)
    scale = 1 / float(np.sqrt(sizes[2]))
    mask: Array | None = None
    if case % 2:
        shape = [(sizes[0], sizes[1]), (batch[0], 1, 1, sizes[1]), (*batch, sizes[0], sizes[1])][case % 3]
        mask = random.standard_normal(shape).astype(dtype)
        inputs["m"] = mask
    nodes, constants = product_softmax_product(scale, dtype, mask is not None)
    given = model(nodes, inputs, constants)
    assert ONLINE in algorithms(given)
    assert ONLINE not in algorithms(given, "strict")
    same(run(compiled(given, checked=case < 4), inputs), expected(inputs, scale, mask))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("keys", [40, 333])
def test_rows_without_scores_infinities_and_nan(keys: int) -> None:
    random = np.random.default_rng(keys)
    inputs: dict[str, Array] = operands(random, (1, 2), (45, keys, 24, 17))
    mask = np.where(random.random((45, keys)) < 0.4, -np.inf, 0).astype(np.float32)
    mask[3] = -np.inf
    mask[5, : keys - 3] = -np.inf
    mask[7, 2] = np.inf
    mask[9, 1] = np.nan
    mask[11] = np.finfo(np.float32).min
    inputs["m"] = mask
    inputs["q"][0, 1, 20, 3] = np.nan
    inputs["v"][0, 0, 1, 4] = np.inf
    inputs["v"][0, 1, 30, 2] = np.nan
    nodes, constants = product_softmax_product(0.5, np.float32, mask=True)
    given = model(nodes, inputs, constants)
    assert ONLINE in algorithms(given)
    found, wanted = run(compiled(given), inputs), expected(inputs, 0.5, mask)
    with np.errstate(all="ignore"):
        large = np.isinf(wanted)
        assert (found[large] == wanted[large]).all()
        same(np.where(large, np.float32(0), found), np.where(large, 0, wanted))
    assert np.isnan(found[:, :, 3]).all()
    plain = run(compiled(given, numerics="strict"), inputs)
    assert (np.isnan(plain) == np.isnan(found)).all()


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_bits_do_not_depend_on_threads(threads: int) -> None:
    random = np.random.default_rng(11)
    inputs = operands(random, (2, 3), (130, 300, 64, 40))
    nodes, constants = product_softmax_product(0.125, np.float32)
    given = model(nodes, inputs, constants)
    one, other = run(compiled(given, threads=2), inputs), run(compiled(given, threads=threads), inputs)
    assert one.tobytes() == other.tobytes()


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("form", ["plain", "causal", "boolean", "groups", "packed"])
def test_the_operator_attention(form: str) -> None:
    random = np.random.default_rng(17)
    inputs: dict[str, Array] = operands(random, (2, 4), (50, 70, 16, 12))
    attributes: dict[str, Any] = {"is_causal": 1} if form == "causal" else {}
    mask: Array | None = None
    names = ["q", "k", "v"]
    if form == "groups":
        inputs |= {name: inputs[name][:, :2] for name in ("k", "v")}
    if form == "boolean":
        inputs["m"] = random.random((50, 70)) < 0.5
        inputs["m"][4] = False
        names.append("m")
        mask = np.where(inputs["m"], 0, -np.inf)
    if form == "causal":
        mask = np.where(np.arange(70) <= np.arange(50)[:, None], 0, -np.inf)
    wide = {k: np.repeat(a, 2, axis=1) if form == "groups" and k != "q" else a for k, a in inputs.items()}
    wanted = expected(wide, 0.25, mask)
    if form == "boolean":
        wanted[:, :, 4] = 0  # as the operator says
    if form == "packed":
        inputs = {name: inputs[name].swapaxes(1, 2).reshape(2, -1, inputs[name].shape[3] * 4) for name in names}
        attributes = {"q_num_heads": 4, "kv_num_heads": 4}
        wanted = wanted.swapaxes(1, 2).reshape(2, 50, 48)
    given = model([node("Attention", names, ["o"], **attributes)], inputs, opset=23)
    assert ONLINE in algorithms(given)
    same(run(compiled(given, checked=form == "groups"), inputs), wanted)


@pytest.mark.usefixtures("small_caches")
def test_free_batch() -> None:
    random = np.random.default_rng(23)
    inputs = operands(random, (3, 2), (60, 90, 32, 32))
    nodes, constants = product_softmax_product(0.2, np.float32)
    given = model(nodes, inputs, constants, free={name: {0: "n"} for name in "qkv"})
    assert ONLINE in algorithms(given)
    executable = compiled(given)
    for count in (3, 1, 5, 0):
        some = {name: np.resize(array, (count, *array.shape[1:])) for name, array in inputs.items()}
        found = run(executable, some)
        assert found.shape == (count, 2, 60, 32)
        if count:
            same(found, expected(some, 0.2))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("names", ["mn", "m", "n"])
@pytest.mark.parametrize("mask", [False, True])
def test_free_lengths(names: str, mask: bool) -> None:
    random = np.random.default_rng(43)
    free = {"q": {2: "m"}, "k": {2: "n"}, "v": {2: "n"}, "m": {2: "m", 3: "n"}}
    free = {name: {d: symbol for d, symbol in entry.items() if symbol in names} for name, entry in free.items()}

    def given(queries: int, keys: int) -> dict[str, Array]:
        made: dict[str, Array] = operands(random, (1, 3), (queries, keys, 24, 16))
        if mask:
            made["m"] = np.where(random.random((1, 1, queries, keys)) < 0.3, -np.inf, 0).astype(np.float32)
        return made

    nodes, constants = product_softmax_product(0.2, np.float32, mask)
    graph = model(nodes, given(70, 150), constants, free=free)
    assert ONLINE in algorithms(graph)
    executables = [compiled(graph, checked=checked) for checked in ((False, True) if names == "mn" else (False,))]
    for queries, keys in ((70, 150), (1, 1), (64, 128), (67, 333), (5, 17), (200, 1000), (3, 0), (0, 4)):
        if ("m" not in names and queries != 70) or ("n" not in names and keys != 150):
            queries, keys = (queries if "m" in names else 70), (keys if "n" in names else 150)
        inputs = given(queries, keys)
        wanted = expected(inputs, 0.2, inputs.get("m")) if keys else np.zeros((1, 3, queries, 16))
        for one in executables:
            found = run(one, inputs)
            assert found.shape == wanted.shape
            same(found, wanted)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("form", ["scores", "weights", "axis", "rows", "few"])
def test_what_is_something_else(form: str) -> None:
    random = np.random.default_rng(29)
    sizes = (16 if form == "few" else 40, 40, 24, 24)
    inputs = operands(random, (1, 2), sizes)
    nodes, constants = product_softmax_product(0.2, np.float32)
    if form == "scores":  # read elsewhere
        nodes[-1] = node("MatMul", ["p", "v"], ["w"])
        nodes += [node("ReduceMax", ["x"], ["l"]), node("Add", ["w", "l"], ["o"])]
    if form == "weights":
        nodes[-1] = node("MatMul", ["p", "v"], ["w"])
        nodes += [node("ReduceMax", ["p"], ["l"]), node("Add", ["w", "l"], ["o"])]
    if form == "axis":
        nodes[3] = node("Softmax", ["x"], ["p"], axis=-2)
    if form == "rows":  # weights that change from key to key
        nodes[3] = node("Softmax", ["x"], ["a"], axis=-1)
        nodes.insert(4, node("Mul", ["a", "x"], ["p"]))
    given = model(nodes, inputs, constants)
    assert ONLINE not in algorithms(given)
    found = run(compiled(given), inputs)
    if form == "few":
        same(found, expected(inputs, 0.2))


def test_small_scores_are_stored() -> None:
    random = np.random.default_rng(31)
    nodes, constants = product_softmax_product(0.2, np.float32)
    assert ONLINE not in algorithms(model(nodes, operands(random, (1, 4), (64, 64, 32, 32)), constants))
    assert ONLINE in algorithms(model(nodes, operands(random, (1, 8), (512, 512, 32, 32)), constants))


# -- the algorithm ---------------------------------------------------------------------------------------------------
def found_in(given: onnx.ModelProto):
    graph = Pipeline().run(load_graph(given))
    found = attention_of(region_of(graph, "attention", graph.nodes).definition.computation)
    assert found is not None
    return found


@pytest.mark.parametrize("blocks", [(6, 8), (5, 7), (13, 40), (20, 3)])
@pytest.mark.parametrize("mask", [False, True])
def test_the_loop_program_by_the_interpreter(blocks: tuple[int, int], mask: bool) -> None:
    random = np.random.default_rng(37)
    inputs: dict[str, Array] = operands(random, (2, 1), (13, 19, 5, 4), np.float64)
    if mask:
        inputs["m"] = np.where(random.random((13, 19)) < 0.5, -np.inf, 0.0)
        inputs["m"][:, 0] = 0
        inputs["m"][2] = -np.inf
    nodes, constants = product_softmax_product(0.3, np.float64, mask)
    found = found_in(model(nodes, inputs, constants))
    program = online_softmax(found, *blocks)
    verify(program)
    by_size = {array.size: array for array in inputs.values()}
    arguments = {
        a.buffer.name: by_size[int(a.buffer.size)].reshape([int(d) for d in a.buffer.shape])
        for a in program.arguments
        if a.access == "read"
    }
    result = arguments[found.output.name] = np.full([int(d) for d in found.output.shape], np.nan)
    interpret(program, arguments)
    same(result.reshape(2, 1, 13, 4), expected(inputs, 0.3, inputs.get("m")))


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64", "znver4"])
def test_other_machines(name: str) -> None:
    """Blocks follow from registers and caches; both products are tiles in registers everywhere."""
    random = np.random.default_rng(41)
    nodes, constants = product_softmax_product(0.3, np.float32)
    found = found_in(model(nodes, operands(random, (1, 8), (300, 700, 64, 64)), constants))
    target = machine(name)
    sizes = blocks_of(found, target)
    assert isinstance(sizes, Blocks)
    assert sizes.keys < 700
    schedule = scheduled(found, sizes, target, numerics("default"))
    for product in ("scores", "weigh"):
        kinds = [loop.kind for loop in schedule.setting.enclosing(schedule.setting.statement(product))]
        assert kinds.count("vectorized") == 1
        assert kinds.count("unrolled") >= 1
        assert schedule.program.buffers[f"{product}.cells"].scope == "register"
    around = [loop for loop in schedule.setting.enclosing(schedule.setting.statement("weigh")) if loop.extent != 1]
    assert around[0].kind == "parallel"


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("lengths", [("", ""), ("n", "s")])
def test_heads_that_lie_side_by_side(lengths: tuple[str, str]) -> None:
    """Queries, keys and values as a projection leaves them: reshaped and turned inside the region."""
    random = np.random.default_rng(47)
    inputs: dict[str, Array] = {name: random.standard_normal((2, 45, 48)).astype(np.float32) for name in "qkv"}
    nodes: Nodes = []
    for name in "qkv":
        nodes.append(node("Mul", [name, "one"], [f"{name}0"]))
        nodes.append(node("Reshape", [f"{name}0", "split"], [f"{name}1"]))
        order = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes.append(node("Transpose", [f"{name}1"], [f"{name}2"], perm=order))
    nodes += [
        node("MatMul", ["q2", "k2"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "v2"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]),
        node("Reshape", ["t", "join"], ["o"]),
    ]
    constants = {
        "one": np.linspace(0.5, 1, 48, dtype=np.float32),
        "split": np.array([0, 0, 4, 12]),
        "join": np.array([0, 0, 48]),
    }
    free = {name: {d: symbol for d, symbol in enumerate(lengths) if symbol} for name in "qkv"}
    given = model(nodes, inputs, constants, free=free)
    assert ONLINE in algorithms(given)
    heads = {
        name: (array * constants["one"]).reshape(2, 45, 4, 12).transpose(0, 2, 1, 3) for name, array in inputs.items()
    }
    wanted = expected(heads, 1.0).transpose(0, 2, 1, 3).reshape(2, 45, 48)
    same(run(compiled(given), inputs), wanted)
