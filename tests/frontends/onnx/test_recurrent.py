# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
"""RNN, GRU and LSTM against a plain numpy loop: every attribute, lengths, layouts, free dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import tilework
from tilework.errors import FrontendError, RunError

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


FUNCTIONS: dict[str, Any] = {
    "Sigmoid": _sigmoid, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0), "Softsign": lambda x: x / (1 + abs(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)), "Elu": lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)),
    "HardSigmoid": lambda x: np.clip(0.3 * x + 0.4, 0, 1), "LeakyRelu": lambda x: np.where(x > 0, x, 0.05 * x),
    "Affine": lambda x: 0.5 * x + 0.25, "ScaledTanh": lambda x: 0.9 * np.tanh(0.8 * x),
    "ThresholdedRelu": lambda x: np.where(x > 0.2, x, 0),
}  # fmt: skip
PARAMETERS = {
    "Elu": (0.7, None), "HardSigmoid": (0.3, 0.4), "LeakyRelu": (0.05, None), "Affine": (0.5, 0.25),
    "ScaledTanh": (0.9, 0.8), "ThresholdedRelu": (0.2, None),
}  # fmt: skip


def reference(
    operator: str, x: Any, w: Any, r: Any, b: Any, lengths: Any, h: Any, c: Any, p: Any, how: dict[str, Any]
) -> Any:
    """Position by position in float64: Y [T, D, B, H], Y_h, Y_c."""
    directions, hidden, (positions, batch, _) = w.shape[0], r.shape[2], x.shape
    y = np.zeros((positions, directions, batch, hidden))
    last_h, last_c = np.zeros((directions, batch, hidden)), np.zeros((directions, batch, hidden))
    clip = how.get("clip", np.inf)
    for d in range(directions):
        names = how["activations"][d * (len(how["activations"]) // directions) :]
        f, g, *rest = [lambda v, n=n: FUNCTIONS[n](np.clip(v, -clip, clip)) for n in [*names, "Tanh"]]
        n = GATES[operator] * hidden
        wb, rb = (b[d, :n], b[d, n:]) if b is not None else (np.zeros(n), np.zeros(n))
        for row in range(batch):
            order = range(lengths[row])
            state, cell = h[d, row], c[d, row]
            for t in reversed(order) if how["direction"] == "reverse" or d == 1 else order:
                a, s = x[t, row] @ w[d].T + wb, state @ r[d].T
                parts = [slice(i * hidden, (i + 1) * hidden) for i in range(GATES[operator])]
                if operator == "RNN":
                    state = f(a + s + rb)
                elif operator == "GRU":
                    z, reset = f(a[parts[0]] + (s + rb)[parts[0]]), f(a[parts[1]] + (s + rb)[parts[1]])
                    if how.get("linear_before_reset"):
                        new = g(a[parts[2]] + reset * (s + rb)[parts[2]])
                    else:
                        new = g(a[parts[2]] + (reset * state) @ r[d][parts[2]].T + rb[parts[2]])
                    state = (1 - z) * new + z * state
                else:
                    total = a + s + rb
                    i = f(total[parts[0]] + p[d][parts[0]] * cell)
                    forget = 1 - i if how.get("input_forget") else f(total[parts[2]] + p[d][parts[2]] * cell)
                    cell = forget * cell + i * g(total[parts[3]])
                    state = f(total[parts[1]] + p[d][parts[1]] * cell) * rest[0](cell)
                y[t, d, row] = state
            if lengths[row]:  # else 0, as in ONNX Runtime
                last_h[d, row], last_c[d, row] = state, cell
    return y, last_h, last_c


def model(operator: str, arrays: dict[str, Any], how: dict[str, Any], free: bool) -> ModelProto:
    names = ["X", "W", "R", "B", "sequence_lens", "initial_h", *(("initial_c", "P") if operator == "LSTM" else ())]
    constants = [n for n in ("W", "R", "B", "P") if n in arrays]
    results = ["Y", "Y_h", *(("Y_c",) if operator == "LSTM" else ())]
    node = helper.make_node(operator, [n if n in arrays else "" for n in names], results, **how)
    inputs: list[Any] = []
    for name, array in arrays.items():
        if name in constants:
            continue
        shape: list[Any] = list(array.shape)
        batch_first = bool(how.get("layout", 0))
        if free:
            places = {"X": ("B", "T") if batch_first else ("T", "B"), "sequence_lens": ("B",)}
            states = ("B", None) if batch_first else (None, "B")
            for place, symbol in enumerate(places.get(name, states)):
                shape[place] = symbol or shape[place]
        kind = TensorProto.INT32 if name == "sequence_lens" else TensorProto.FLOAT
        inputs.append(helper.make_tensor_value_info(name, kind, shape))
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results]
    held = [helper.make_tensor(n, TensorProto.FLOAT, arrays[n].shape, arrays[n].ravel().tolist()) for n in constants]
    graph = helper.make_graph([node], "recurrent", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=9)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("seed", range(6))
def test_against_a_loop(operator: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    direction = ("forward", "reverse", "bidirectional")[seed % 3]
    directions = 2 if direction == "bidirectional" else 1
    positions, batch, width, hidden = int(rng.integers(1, 9)), int(rng.integers(1, 6)), 3, int(rng.integers(1, 10))
    gates = GATES[operator]
    how: dict[str, Any] = {"direction": direction, "hidden_size": hidden, "layout": seed % 2}
    wanted = {"RNN": 1, "GRU": 2, "LSTM": 3}[operator] * directions
    usual = ["Tanh"] if operator == "RNN" else ["Sigmoid", "Tanh", "Tanh"][: wanted // directions]
    chosen = [str(n) for n in rng.choice(sorted(FUNCTIONS), wanted)] if seed > 2 else usual * directions
    how["activations"] = chosen
    how["activation_alpha"] = [PARAMETERS[n][0] for n in chosen if n in PARAMETERS] or [0.0]
    how["activation_beta"] = [PARAMETERS[n][1] for n in chosen if n in PARAMETERS and PARAMETERS[n][1]] or [0.0]
    if seed == 4:
        how["clip"] = 0.4
    if operator == "GRU" and seed % 2:
        how["linear_before_reset"] = 1
    if operator == "LSTM" and seed == 5:
        how["input_forget"] = 1

    def draw(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    x, h, c = draw(positions, batch, width), draw(directions, batch, hidden), draw(directions, batch, hidden)
    lengths = rng.integers(0, positions + 1, batch).astype(np.int32)
    arrays: dict[str, Any] = {
        "X": x,
        "W": draw(directions, gates * hidden, width),
        "R": draw(directions, gates * hidden, hidden),
    }
    if seed != 1:
        arrays["B"] = draw(directions, 2 * gates * hidden)
    if seed > 1:
        arrays |= {"sequence_lens": lengths, "initial_h": h}
        if operator == "LSTM":
            arrays |= {"initial_c": c, "P": draw(directions, 3 * hidden)}
    zeros = np.zeros_like(h)
    y, last_h, last_c = reference(
        operator, x.astype(np.float64), arrays["W"], arrays["R"], arrays.get("B"),
        arrays.get("sequence_lens", np.full(batch, positions)), arrays.get("initial_h", zeros),
        arrays.get("initial_c", zeros), arrays.get("P", np.zeros((directions, 3 * hidden))), how,
    )  # fmt: skip
    if how["layout"]:
        for name in ("X", "initial_h", "initial_c"):
            if name in arrays:
                arrays[name] = np.ascontiguousarray(arrays[name].swapaxes(0, 1))
        y, last_h, last_c = y.transpose(2, 0, 1, 3), last_h.swapaxes(0, 1), last_c.swapaxes(0, 1)
    for free in (False, True):
        executable = tilework.compile(model(operator, arrays, how, free))
        found = executable(**{n: a for n, a in arrays.items() if n not in ("W", "R", "B", "P")})
        for have, want in zip(found, (y, last_h, last_c), strict=False):
            np.testing.assert_allclose(have, want, rtol=2e-5, atol=2e-6)


def test_refusals() -> None:
    arrays = {
        "X": np.zeros((2, 1, 3), np.float32),
        "W": np.zeros((1, 16, 3), np.float32),
        "R": np.zeros((1, 16, 4), np.float32),
    }
    for how, words in (
        ({"hidden_size": 5}, "hidden_size"), ({"activations": ["Tanh"]}, "entries"), ({"clip": -1.0}, "clip"),
        ({"activations": ["Sine", "Tanh", "Tanh"]}, "Sine"), ({"direction": "sideways"}, "sideways"),
    ):  # fmt: skip
        with pytest.raises(FrontendError, match=words):
            tilework.compile(model("LSTM", arrays, how, False))
    arrays["W"] = np.zeros((1, 12, 3), np.float32)
    with pytest.raises(FrontendError, match="W is"):
        tilework.compile(model("LSTM", arrays, {"hidden_size": 4}, False))


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("initial_h", (1, 1, 4)), ("initial_h", (2, 2, 4)), ("initial_h", (1, 2, 1)), ("initial_h", (2, 4)),
     ("initial_c", (1, 1, 4)), ("sequence_lens", (1,)), ("sequence_lens", ()), ("P", (12,)), ("P", (1, 11)),
     ("P", (2, 12))],
)  # fmt: skip
def test_operands_of_other_shapes_are_refused(name: str, shape: tuple[int, ...], layout: int) -> None:
    """None is repeated for the rest of a batch, and no rank is taken for another."""
    arrays: dict[str, Any] = {
        "X": np.zeros((2, 3, 3) if layout else (3, 2, 3), np.float32), "W": np.zeros((1, 16, 3), np.float32),
        "R": np.zeros((1, 16, 4), np.float32),
    }  # fmt: skip
    if layout and len(shape) == 3:
        shape = (shape[1], shape[0], shape[2])
    arrays[name] = np.zeros(shape, np.int32 if name == "sequence_lens" else np.float32)
    with pytest.raises(FrontendError, match=f"{name} is"):
        tilework.compile(model("LSTM", arrays, {"layout": layout}, False))


@pytest.mark.parametrize("free", [False, True])
def test_lengths_outside_the_steps_end_the_call(free: bool) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "X": rng.standard_normal((3, 2, 3)).astype(np.float32), "W": np.ones((1, 4, 3), np.float32),
        "R": np.ones((1, 4, 4), np.float32), "sequence_lens": np.array([3, 0], np.int32),
    }  # fmt: skip
    executable = tilework.compile(model("RNN", arrays, {}, free))
    wanted = executable(arrays["X"], arrays["sequence_lens"])[0]
    for wrong in (4, -1, -3, 2**31 - 1, -(2**31)):
        with pytest.raises(RunError, match=r"TW1801.*RNN -> Y.*0 to all steps"):
            executable(arrays["X"], np.array([1, wrong], np.int32))
        constant = model("RNN", arrays, {}, free=False)
        (lengths,) = (given for given in constant.graph.input if given.name == "sequence_lens")
        constant.graph.input.remove(lengths)
        constant.graph.initializer.append(helper.make_tensor("sequence_lens", TensorProto.INT32, [2], [1, wrong]))
        with pytest.raises(FrontendError, match=f"sequence_lens holds {wrong}"):
            tilework.compile(constant)
    np.testing.assert_array_equal(executable(arrays["X"], arrays["sequence_lens"])[0], wanted)


@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("held", [False, True])
def test_rows_without_steps_end_in_zeros_as_in_onnx_runtime(operator: str, direction: str, held: bool) -> None:
    peer = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(9)
    gates, directions, hidden = GATES[operator], 2 if direction == "bidirectional" else 1, 2
    arrays: dict[str, Any] = {
        "X": rng.standard_normal((3, 3, 2)).astype(np.float32),
        "W": rng.standard_normal((directions, gates * hidden, 2)).astype(np.float32),
        "R": rng.standard_normal((directions, gates * hidden, hidden)).astype(np.float32),
        "sequence_lens": np.array([0, 3, 0], np.int32),
        "initial_h": rng.standard_normal((directions, 3, hidden)).astype(np.float32),
    }
    if operator == "LSTM":
        arrays["initial_c"] = 1 + rng.standard_normal((directions, 3, hidden)).astype(np.float32)
    proto = model(operator, arrays, {"hidden_size": hidden, "direction": direction}, False)
    if held:
        (given,) = (value for value in proto.graph.input if value.name == "sequence_lens")
        proto.graph.input.remove(given)
        proto.graph.initializer.append(helper.make_tensor("sequence_lens", TensorProto.INT32, [3], [0, 3, 0]))
    feeds = {value.name: arrays[value.name] for value in proto.graph.input}
    session = peer.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feeds)
    assert not wanted[1][:, ::2].any()
    for got, want in zip(tilework.compile(proto)(**feeds), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
