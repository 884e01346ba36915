"""Products of matrices: MatMul, Gemm, and Einstein sums."""

from __future__ import annotations

from tilework import dtypes
from tilework.frontends.onnx.broadcasting import joined, spread
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.graph.graph import Value


def _matmul(node: OnnxNode) -> Value:
    left, right = node.value(0), node.value(1)
    if left.tensor.rank > 2 and right.tensor.rank > 2:  # the stacks broadcast
        stacks = joined(node.emit, left.tensor.shape[:-2], right.tensor.shape[:-2])
        left, right = (
            spread(node.emit, side, (*stacks[len(stacks) + 2 - side.tensor.rank :], *side.tensor.shape[-2:]))
            for side in (left, right)
        )
    return node.emit.matmul(left, right)


def _gemm(node: OnnxNode) -> Value:
    """alpha A B + beta C, A and B transposed on demand."""
    left, right, emit = node.value(0), node.value(1), node.emit
    if left.tensor.rank != 2 or right.tensor.rank != 2:
        raise NodeFault(1119, f"operands {left.type} and {right.type} must be matrices")
    contracted_left, contracted_right = (0 if node.flag("transA") else 1), (1 if node.flag("transB") else 0)
    found = emit.dot(left, right, (), (), (contracted_left,), (contracted_right,))
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if alpha != 1:
        found = emit.apply("multiply", found, alpha)
    if node.has(2) and beta != 0:
        bias = node.value(2)
        if bias.tensor.rank > 2:
            raise NodeFault(1119, f"operand C, {bias.type}, has more than two dimensions")
        bias = spread(emit, bias, found.tensor.shape[2 - bias.tensor.rank :])
        found = emit.apply("add", found, bias if beta == 1 else emit.apply("multiply", bias, beta))
    return found


# -- Einstein sums -----------------------------------------------------------------------------------------------------
def _einsum(node: OnnxNode) -> Value:
    """Pairwise from the left; a label twice in one operand takes its diagonal first."""
    values = node.values()
    terms, wanted = _labels("".join(node.text("equation").split()), [value.tensor.rank for value in values])
    emit = node.emit
    for place, (value, term) in enumerate(zip(values, terms, strict=True)):
        values[place], terms[place] = _diagonal(emit, value, term)
    total, labels = values[0], terms[0]
    for position, (value, term) in enumerate(zip(values[1:], terms[1:], strict=True), 1):
        later = {label for rest in (wanted, *terms[position + 1 :]) for label in rest}
        total, labels = _pair(emit, (total, labels), (value, term), later)
    total, labels = _sum_out(emit, total, labels, set(wanted))
    return emit.transpose(total, [labels.index(label) for label in wanted])


def _labels(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of every operand and of the result; an ellipsis becomes labels 0, 1, ... counted from the right."""
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise NodeFault(1108, f"equation {equation!r} has {len(texts)} operands, the node has {len(ranks)}")
    terms: list[list[str]] = []
    most = 0
    for text, rank in zip(texts, ranks, strict=True):
        before, dots, after = text.partition("...")
        spare = rank - len(before) - len(after)
        if spare < 0 or (spare and not dots) or (not (before + after).isalpha() and before + after):
            raise NodeFault(1108, f"equation {equation!r} does not fit an operand of rank {rank}")
        most = max(most, spare)
        terms.append([*before, *(str(place) for place in reversed(range(spare))), *after])
    dotted = [str(place) for place in reversed(range(most))]
    if arrow:
        before, dots, after = right.partition("...")
        wanted = [*before, *(dotted if dots else []), *after]
    else:
        every = [label for term in terms for label in term]
        wanted = [*dotted, *sorted(label for label in set(every) if every.count(label) == 1 and label.isalpha())]
    if len(set(wanted)) != len(wanted) or not set(wanted) <= {label for term in terms for label in term}:
        raise NodeFault(1108, f"equation {equation!r} has a result that does not follow from its operands")
    return terms, wanted


def _diagonal(emit: Emitter, value: Value, labels: list[str]) -> tuple[Value, list[str]]:
    """The elements with equal positions wherever a label stands twice: all others times 0 would be NaN, so chosen."""
    while len(set(labels)) != len(labels):
        second = next(axis for axis, label in enumerate(labels) if label in labels[:axis])
        first = labels.index(labels[second])
        emit.equal_shapes([value.tensor.shape[first]], [value.tensor.shape[second]])
        shape = value.tensor.shape
        places = [emit.iota([shape[axis]], 0, dtypes.int64) for axis in (first, second)]
        on = emit.compare("EQ", *(
            emit.reshape(p, [p.tensor.shape[0] if axis == at else 1 for axis in range(len(shape))])
            for p, at in zip(places, (first, second), strict=True)
        ))  # fmt: skip
        kept = emit.apply("select", on, value, emit.scalar(0, value.tensor.dtype))
        value = emit.reduce(kept, [second], "sum", keep=False)
        labels = [*labels[:second], *labels[second + 1 :]]
    return value, labels


def _sum_out(emit: Emitter, value: Value, labels: list[str], kept: set[str]) -> tuple[Value, list[str]]:
    axes = [axis for axis, label in enumerate(labels) if label not in kept]
    return emit.reduce(value, axes, "sum", keep=False), [label for label in labels if label in kept]


def _pair(
    emit: Emitter, left: tuple[Value, list[str]], right: tuple[Value, list[str]], later: set[str]
) -> tuple[Value, list[str]]:
    """The product of two operands, summed over the labels that nothing later needs."""
    a, a_labels = _sum_out(emit, *left, later | set(right[1]))
    b, b_labels = _sum_out(emit, *right, later | set(left[1]))
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in later]
    contracted = [label for label in shared if label not in later]
    found = emit.dot(
        a, b, [a_labels.index(x) for x in batch], [b_labels.index(x) for x in batch],
        [a_labels.index(x) for x in contracted], [b_labels.index(x) for x in contracted],
    )  # fmt: skip
    free = [x for x in a_labels if x not in shared] + [x for x in b_labels if x not in shared]
    return found, [*batch, *free]


CONVERTERS: dict[str, Converter] = {"Einsum": _einsum, "Gemm": _gemm, "MatMul": _matmul}
