"""Steps of optimisers (domain ai.onnx.preview.training): new weights and moments from weights, gradients and moments.

Operands are the learning rate, the number of steps done, and groups of tensors: all weights, all gradients, then all
moments of each kind; results are the new weights, then the new moments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.graph.graph import Value

DOMAIN = "ai.onnx.preview.training"

Step: TypeAlias = "Callable[[OnnxNode, Value, Value, list[Value]], list[Value]]"
"""(node, learning rate, steps done, one weight with its gradient and moments) to the new weight and moments."""


def _each(step: Step, moments: int) -> Converter:
    """The step for every weight of the node."""

    def convert(node: OnnxNode) -> tuple[Value, ...]:
        rate, count, *rest = node.values()
        groups = moments + 2
        if not rest or len(rest) % groups:
            raise NodeFault(1117, f"{len(rest)} tensors are no {groups} for each weight")
        many = len(rest) // groups
        emit = node.emit
        rate, count = emit.reshape(rate, ()), emit.reshape(count, ())
        found: list[list[Value]] = []
        for place in range(many):
            own = rest[place::many]
            kind = element(own[0])
            found.append(step(node, emit.convert(rate, kind), emit.convert(count, kind), own))
        return tuple(results[part] for part in range(moments + 1) for results in found)

    return convert


def _regularised(node: OnnxNode, weight: Value, gradient: Value) -> Value:
    emit = node.emit
    factor = node.number("norm_coefficient", 0.0)
    return gradient if factor == 0 else emit.apply("add", emit.apply("multiply", weight, factor), gradient)


def _mixed(node: OnnxNode, share: float, old: Value, new: Value) -> Value:
    emit = node.emit
    return emit.apply("add", emit.apply("multiply", old, share), emit.apply("multiply", new, 1.0 - share))


def _adagrad(node: OnnxNode, rate: Value, count: Value, own: list[Value]) -> list[Value]:
    weight, gradient, squares = own
    emit = node.emit
    decayed = emit.apply("add", emit.apply("multiply", count, node.number("decay_factor", 0.0)), 1.0)
    rate = emit.apply("divide", rate, decayed)
    gradient = _regularised(node, weight, gradient)
    squares = emit.apply("add", squares, emit.apply("multiply", gradient, gradient))
    size = emit.apply("add", emit.apply("sqrt", squares), node.number("epsilon", 0.0))
    step = emit.apply("divide", emit.apply("multiply", gradient, rate), size)
    return [emit.apply("subtract", weight, step), squares]


def _adam(node: OnnxNode, rate: Value, count: Value, own: list[Value]) -> list[Value]:
    weight, gradient, first, second = own
    emit = node.emit
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    gradient = _regularised(node, weight, gradient)
    first = _mixed(node, alpha, first, gradient)
    second = _mixed(node, beta, second, emit.apply("multiply", gradient, gradient))
    size = emit.apply("add", emit.apply("sqrt", second), node.number("epsilon", 0.0))
    lost = [
        emit.apply("subtract", 1.0, emit.apply("power", emit.scalar(share, element(weight)), count))
        for share in (alpha, beta)
    ]
    corrected = emit.apply("divide", emit.apply("multiply", rate, emit.apply("sqrt", lost[1])), lost[0])
    rate = emit.apply("select", emit.compare("GT", count, 0.0), corrected, rate)
    moved = emit.apply("subtract", weight, emit.apply("multiply", emit.apply("divide", first, size), rate))
    after = node.number("norm_coefficient_post", 0.0)
    return [moved if after == 0 else emit.apply("multiply", moved, 1.0 - after), first, second]


def _momentum(node: OnnxNode, rate: Value, count: Value, own: list[Value]) -> list[Value]:
    weight, gradient, moment = own
    emit = node.emit
    alpha, beta = node.number("alpha"), node.number("beta")
    gradient = _regularised(node, weight, gradient)
    one, share = emit.scalar(1.0, element(weight)), emit.scalar(beta, element(weight))
    share = emit.apply("select", emit.compare("GT", count, 0.0), share, one)
    moment = emit.apply("add", emit.apply("multiply", moment, alpha), emit.apply("multiply", gradient, share))
    direction = moment
    if node.choice("mode", "standard", ("standard", "nesterov")) == "nesterov":
        direction = emit.apply("add", gradient, emit.apply("multiply", moment, alpha))
    return [emit.apply("subtract", weight, emit.apply("multiply", direction, rate)), moment]


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::Adagrad": _each(_adagrad, 1), f"{DOMAIN}::Adam": _each(_adam, 2),
    f"{DOMAIN}::Momentum": _each(_momentum, 1),
}  # fmt: skip
