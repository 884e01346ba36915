"""Recurrent layers: RNN, GRU, LSTM. The products with the inputs are computed for all positions at once; a `scan` over
the positions then passes the state on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element, finite
from tilework.frontends.onnx.positions import counted_from_front
from tilework.frontends.onnx.unify import require_equal, require_shape
from tilework.graph.graph import Value

Activation = Callable[[Emitter, Value], Value]


# -- activations -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Kind:
    """An activation with the defaults of its parameters (None: it has no such parameter)."""

    alpha: float | None
    beta: float | None
    make: Callable[[Emitter, Value, float, float], Value]


def _clamp(emit: Emitter, x: Value, low: float, high: float) -> Value:
    kind = x.tensor.dtype
    return emit.apply("clamp", emit.scalar(low, kind), x, emit.scalar(high, kind))


def _linear(emit: Emitter, x: Value, factor: float, addend: float) -> Value:
    return emit.apply("add", emit.apply("multiply", x, factor), addend)


def _where_positive(emit: Emitter, x: Value, limit: float, otherwise: Value) -> Value:
    return emit.apply("select", emit.compare("GT", x, limit), x, otherwise)


def _softplus(emit: Emitter, x: Value) -> Value:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)."""
    small = emit.apply("exponential", emit.apply("negate", emit.apply("abs", x)))
    return emit.apply("add", emit.apply("maximum", x, 0.0), emit.apply("log_plus_one", small))


_ACTIVATIONS: dict[str, _Kind] = {
    "relu": _Kind(None, None, lambda e, x, a, b: e.apply("maximum", x, 0.0)),
    "tanh": _Kind(None, None, lambda e, x, a, b: e.apply("tanh", x)),
    "sigmoid": _Kind(None, None, lambda e, x, a, b: e.apply("logistic", x)),
    "affine": _Kind(1.0, 0.0, _linear),
    "leakyrelu": _Kind(0.01, None, lambda e, x, a, b: _where_positive(e, x, 0.0, e.apply("multiply", x, a))),
    "thresholdedrelu": _Kind(1.0, None, lambda e, x, a, b: _where_positive(e, x, a, e.zeros_like(x))),
    "scaledtanh": _Kind(
        1.0, 1.0, lambda e, x, a, b: e.apply("multiply", e.apply("tanh", e.apply("multiply", x, b)), a)
    ),
    "hardsigmoid": _Kind(0.2, 0.5, lambda e, x, a, b: _clamp(e, _linear(e, x, a, b), 0.0, 1.0)),
    "elu": _Kind(
        1.0, None,
        lambda e, x, a, b: _where_positive(e, x, 0.0, e.apply("multiply", e.apply("exponential_minus_one", x), a)),
    ),
    "softsign": _Kind(None, None, lambda e, x, a, b: e.apply("divide", x, e.apply("add", e.apply("abs", x), 1.0))),
    "softplus": _Kind(None, None, lambda e, x, a, b: _softplus(e, x)),
}  # fmt: skip


def _activations(node: OnnxNode, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """The activations of each direction. Parameters are listed for those activations that have one, in order."""
    names = list(node.texts("activations", ())) or [*defaults] * directions
    if len(names) != len(defaults) * directions:
        raise NodeFault(1108, f"attribute 'activations' has {len(names)} entries, not {len(defaults) * directions}")
    alphas, betas = list(node.numbers("activation_alpha", ())), list(node.numbers("activation_beta", ()))
    clip = node.number("clip", -1.0) if node.given("clip") else None
    if clip is not None and not finite(clip, "attribute 'clip'") >= 0:
        raise NodeFault(1108, f"attribute 'clip' is {clip}, it must not be negative")
    found = [_activation(name, alphas, betas, clip) for name in names]
    return [found[d * len(defaults) : (d + 1) * len(defaults)] for d in range(directions)]


def _activation(name: str, alphas: list[float], betas: list[float], clip: float | None) -> Activation:
    kind = _ACTIVATIONS.get(name.lower())
    if kind is None:
        raise NodeFault(1123, f"activation {name!r} is not supported; supported: {', '.join(_ACTIVATIONS)}")
    alpha = 0.0 if kind.alpha is None else alphas.pop(0) if alphas else kind.alpha
    beta = 0.0 if kind.beta is None else betas.pop(0) if betas else kind.beta

    def apply(emit: Emitter, x: Value) -> Value:
        return kind.make(emit, x if clip is None else _clamp(emit, x, -clip, clip), alpha, beta)

    return apply


# -- one layer in one direction ----------------------------------------------------------------------------------------
class Weights(Protocol):
    """The weights of one direction, which rows (inputs or a state) are multiplied with: inputs in, gates out."""

    def times(self, emit: Emitter, rows: Value) -> Value:
        """Rows [..., inputs] times the weights, [..., gates H]; `emit` may be a subgraph's."""
        ...

    def part(self, emit: Emitter, start: int, limit: int) -> Weights:
        """The weights of some outputs."""
        ...


@dataclass(frozen=True)
class _Numbers:
    """Weights as they are: [gates H, inputs]."""

    value: Value

    def times(self, emit: Emitter, rows: Value) -> Value:
        return emit.dot(rows, self.value, (), (), (rows.tensor.rank - 1,), (1,))

    def part(self, emit: Emitter, start: int, limit: int) -> Weights:
        return _Numbers(emit.slice_axis(self.value, 0, start, limit))


@dataclass(frozen=True)
class _Direction:
    """Operands of one direction: x W + biases for every position [T, B, gates H], R, biases [gates H] of the recurrent
    product (None: none), peepholes [3 H], and the first state.
    """

    inputs: Value
    recurrent: Weights
    bias: Value | None
    peepholes: Value | None
    state: tuple[Value, ...]
    activations: list[Activation]
    reverse: bool


Cell = Callable[[Emitter, _Direction, Value, "tuple[Value, ...]"], "tuple[Value, ...]"]
"""(emitter of the body, direction, the position's inputs, state) to the next state; the first of it is the output."""


def _gate(emit: Emitter, value: Value, number: int, hidden: int) -> Value:
    return emit.slice_axis(value, value.tensor.rank - 1, number * hidden, (number + 1) * hidden)


def _rnn_cell(emit: Emitter, way: _Direction, x: Value, state: tuple[Value, ...]) -> tuple[Value, ...]:
    (h,) = state
    return (way.activations[0](emit, emit.apply("add", x, way.recurrent.times(emit, h))),)


def _lstm_cell(input_forget: bool) -> Cell:
    def cell(emit: Emitter, way: _Direction, x: Value, state: tuple[Value, ...]) -> tuple[Value, ...]:
        h, c = state
        hidden = _hidden(h)
        total = emit.apply("add", x, way.recurrent.times(emit, h))
        f, g, last = way.activations
        peepholes = way.peepholes

        def seeing(gate: Value, number: int, cell: Value) -> Value:
            if peepholes is None:
                return gate
            weights = emit.broadcast(_gate(emit, peepholes, number, hidden), cell.tensor.shape)
            return emit.apply("add", gate, emit.apply("multiply", weights, cell))

        i = f(emit, seeing(_gate(emit, total, 0, hidden), 0, c))
        if input_forget:
            forget = emit.apply("subtract", emit.fill(1, i.tensor.dtype, i.tensor.shape), i)
        else:
            forget = f(emit, seeing(_gate(emit, total, 2, hidden), 2, c))
        new = g(emit, _gate(emit, total, 3, hidden))
        c = emit.apply("add", emit.apply("multiply", forget, c), emit.apply("multiply", i, new))
        o = f(emit, seeing(_gate(emit, total, 1, hidden), 1, c))
        return emit.apply("multiply", o, last(emit, c)), c

    return cell


def _gru_cell(linear_before_reset: bool) -> Cell:
    def cell(emit: Emitter, way: _Direction, x: Value, state: tuple[Value, ...]) -> tuple[Value, ...]:
        (h,) = state
        hidden = _hidden(h)
        f, g = way.activations
        if linear_before_reset:
            total = way.recurrent.times(emit, h)
            if way.bias is not None:
                total = emit.apply("add", total, emit.broadcast(way.bias, total.tensor.shape))
            z, r = (
                f(emit, emit.apply("add", _gate(emit, x, n, hidden), _gate(emit, total, n, hidden))) for n in (0, 1)
            )
            new = emit.apply("multiply", r, _gate(emit, total, 2, hidden))
        else:
            total = way.recurrent.part(emit, 0, 2 * hidden).times(emit, h)
            z, r = (
                f(emit, emit.apply("add", _gate(emit, x, n, hidden), _gate(emit, total, n, hidden))) for n in (0, 1)
            )
            last = way.recurrent.part(emit, 2 * hidden, 3 * hidden)
            new = last.times(emit, emit.apply("multiply", r, h))
        new = g(emit, emit.apply("add", _gate(emit, x, 2, hidden), new))
        kept = emit.apply("multiply", z, h)
        one = emit.fill(1, z.tensor.dtype, z.tensor.shape)
        return (emit.apply("add", emit.apply("multiply", emit.apply("subtract", one, z), new), kept),)

    return cell


def _hidden(h: Value) -> int:
    return h.tensor.shape[1].constant


def _run(node: OnnxNode, way: _Direction, cell: Cell, lengths: Value | None) -> tuple[Value, ...]:
    """The last state, then the outputs [T, B, H]; past a row's length the state stays and outputs are 0."""
    emit = node.emit
    inner = emit.inside("positions")
    build, scanned = inner.builder, [way.inputs]
    if lengths is not None:
        scanned.append(emit.iota(way.inputs.tensor.shape[:1], 0, dtypes.int32))
    state = tuple(build.input(build.fresh("state"), v.tensor.dtype, *v.tensor.shape) for v in way.state)
    rows = [build.input(build.fresh("row"), v.tensor.dtype, *v.tensor.shape[1:]) for v in scanned]
    following = cell(inner, way, rows[0], state)
    output = following[0]
    if lengths is not None:
        here = inner.compare("LT", inner.broadcast(rows[1], lengths.tensor.shape), lengths)
        inside = inner.broadcast(inner.expand_dims(here, [1]), output.tensor.shape)
        output = inner.apply("select", inside, output, inner.zeros_like(output))
        following = tuple(inner.apply("select", inside, new, old) for new, old in zip(following, state, strict=True))
    body = build.build([*following, output])
    return emit.builder.apply_all(
        "scan", [*way.state, *scanned], {"state_count": len(state), "reverse": way.reverse},
        location=emit.location, subgraphs=(body,),
    )  # fmt: skip


# -- the operators -----------------------------------------------------------------------------------------------------
def _plain_weights(node: OnnxNode, position: int, direction: int) -> Weights:
    return _Numbers(direction_part(node.emit, node.value(position), direction))


@dataclass(frozen=True)
class Layer:
    """What tells the operators apart."""

    gates: int
    activations: tuple[str, ...]
    states: int
    cell: Callable[[OnnxNode], Cell]
    apart: Callable[[OnnxNode], bool] = lambda node: False
    """Whether the biases of the recurrent product stay with it."""
    weights: Callable[[OnnxNode, int, int], Weights] = _plain_weights
    """The weights at a position of the operands, of one direction."""
    gates_last: bool = False
    """Whether W and R are [directions, inputs, gates H], and not [directions, gates H, inputs]."""


def direction_part(emit: Emitter, value: Value, direction: int) -> Value:
    """One direction's part of an operand whose first dimension counts directions."""
    return emit.drop_dims(emit.slice_axis(value, 0, direction, direction + 1), [0])


def run_layer(layer: Layer, node: OnnxNode) -> tuple[Value | None, ...]:
    """The outputs of a recurrent node: all positions', then the last states."""
    emit = node.emit
    way = node.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
    directions = 2 if way == "bidirectional" else 1
    batch_first = node.flag("layout")
    x, w, r = (node.value(n) for n in range(3))
    if x.tensor.rank != 3 or w.tensor.rank != 3 or r.tensor.rank != 3:
        raise NodeFault(1119, f"X {x.type}, W {w.type} and R {r.type} must have three dimensions")
    if batch_first:
        x = emit.transpose(x, (1, 0, 2))
    hidden = r.tensor.shape[1 if layer.gates_last else 2]
    if node.given("hidden_size"):
        size = dim(node.integer("hidden_size"))
        require_equal(node.symbols, hidden, size, f"what is recurrent in R {r.type} and attribute 'hidden_size'")
    if not hidden.is_constant:
        raise NodeFault(1121, f"how many hidden elements R {r.type} has must be known")
    x = emit.shaped(x, (*x.tensor.shape[:2], w.tensor.shape[1 if layer.gates_last else 2]), "X")
    for value, rows, what in ((w, x.tensor.shape[2], "W"), (r, hidden, "R")):
        sides = (hidden * layer.gates, rows)
        _expect(node, value, (dim(directions), *(sides[::-1] if layer.gates_last else sides)), what)
    biases = node.optional(3)
    if biases is not None:
        biases = emit.shaped(biases, (dim(directions), hidden * (2 * layer.gates)), "B")
    steps, batch, _ = x.tensor.shape
    lengths = _lengths(node, steps, batch)
    starts = [node.optional(5 + n) for n in range(layer.states)]
    first = (batch, dim(directions), hidden) if batch_first else (dim(directions), batch, hidden)
    for n, start in enumerate(starts):
        if start is not None:
            starts[n] = emit.shaped(start, first, ("initial_h", "initial_c")[n])
    peepholes = node.optional(7) if layer.states == 2 else None
    if peepholes is not None:
        peepholes = emit.shaped(peepholes, (dim(directions), hidden * 3), "P")
    activations = _activations(node, layer.activations, directions)
    cell = layer.cell(node)
    found: list[tuple[Value, ...]] = []
    for d in range(directions):
        inputs = layer.weights(node, 1, d).times(emit, x)
        bias = None
        if biases is not None:
            both = direction_part(emit, biases, d)
            wide = hidden.constant * layer.gates
            own, bias = emit.slice_axis(both, 0, 0, wide), emit.slice_axis(both, 0, wide, 2 * wide)
            if not layer.apart(node):
                own = emit.apply("add", own, bias)
            inputs = emit.apply("add", inputs, emit.broadcast(own, inputs.tensor.shape))
        shape = (batch, hidden)
        state = tuple(_start(emit, given, d, shape, inputs, batch_first) for given in starts)
        holes = None if peepholes is None else direction_part(emit, peepholes, d)
        reverse = way == "reverse" or d == 1
        one = _Direction(inputs, layer.weights(node, 2, d), bias, holes, state, activations[d], reverse)
        *last, rows = _run(node, one, cell, lengths)
        if lengths is not None and _may_be_none(node):
            last = [
                value if start is None else _zero_without_steps(emit, value, lengths)
                for value, start in zip(last, starts, strict=True)
            ]
        found.append((*last, rows))
    return _results(emit, found, layer.states, batch_first)


def _start(
    emit: Emitter, given: Value | None, direction: int, shape: tuple[Dim, Dim], like: Value, batch_first: bool
) -> Value:
    """The first state [B, H] of one direction: zeros where none is given."""
    if given is None:
        return emit.fill(0, like.tensor.dtype, shape)
    return direction_part(emit, emit.transpose(given, (1, 0, 2)) if batch_first else given, direction)


def _may_be_none(node: OnnxNode) -> bool:
    """Whether a row of the batch may have no steps."""
    known = node.operand(4).array
    return known is None or bool((known == 0).any())


def _zero_without_steps(emit: Emitter, last: Value, lengths: Value) -> Value:
    """Last states [B, H], 0 for rows without steps whatever these started with, as in ONNX Runtime. (The specification
    says nothing of such rows.)
    """
    runs = emit.expand_dims(emit.compare("GT", lengths, 0), [1])
    return emit.apply("select", emit.broadcast(runs, last.tensor.shape), last, emit.zeros_like(last))


def _lengths(node: OnnxNode, steps: Dim, batch: Dim) -> Value | None:
    """How many steps each row of the batch has [B], if that is given: 0 to all, anything else ends the run."""
    lengths, emit = node.optional(4), node.emit
    if lengths is None:
        return None
    lengths = emit.shaped(lengths, (batch,), "sequence_lens")
    known = node.operand(4).array
    if known is not None and known.size:
        least, most = int(known.min()), int(known.max())
        if least < 0 or node.symbols.decide_at_least(steps, most) is False:
            raise NodeFault(
                1119, f"sequence_lens holds {least if least < 0 else most}, X {node.value(0).type} has {steps} steps"
            )
    found = counted_from_front(emit, lengths, steps + 1)
    every = emit.builder.apply_one(
        "iota", shape=(steps + 1,), dimension=0, dtype=element(lengths), location=emit.location,
        names=emit.builder.fresh("0 to all steps"),
    )  # fmt: skip
    return emit.apply("take", every, found, dimension=0)


def _results(emit: Emitter, found: list[tuple[Value, ...]], states: int, batch_first: bool) -> tuple[Value | None, ...]:
    """Y, then the last states, with the directions side by side."""
    rows = emit.concatenate([emit.expand_dims(one[states], [1]) for one in found], 1)  # [T, D, B, H]
    last = [emit.concatenate([emit.expand_dims(one[n], [0]) for one in found], 0) for n in range(states)]
    if batch_first:
        rows = emit.transpose(rows, (2, 0, 1, 3))
        last = [emit.transpose(value, (1, 0, 2)) for value in last]
    return rows, *last


def _expect(node: OnnxNode, value: Value, shape: tuple[Dim, ...], what: str) -> None:
    require_shape(node.symbols, value.tensor.shape, shape, what)


_RNN = Layer(1, ("Tanh",), 1, lambda node: _rnn_cell)
_GRU = Layer(
    3, ("Sigmoid", "Tanh"), 1, lambda node: _gru_cell(node.flag("linear_before_reset")),
    lambda node: node.flag("linear_before_reset"),
)  # fmt: skip
LSTM = Layer(4, ("Sigmoid", "Tanh", "Tanh"), 2, lambda node: _lstm_cell(node.flag("input_forget")))

CONVERTERS: dict[str, Converter] = {
    "GRU": lambda node: run_layer(_GRU, node),
    "LSTM": lambda node: run_layer(LSTM, node),
    "RNN": lambda node: run_layer(_RNN, node),
}
