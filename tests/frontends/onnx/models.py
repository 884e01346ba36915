"""Small ONNX models for the tests, and the comparison of an import with plain numpy or onnx.reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilework.errors import FrontendError
from tilework.frontends.onnx.black_boxes import FUNCTIONS
from tilework.frontends.onnx.importer import import_model
from tilework.graph.graph import Array, Graph
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify

Shape = Sequence["int | str | None"]


def value(name: str, array_or_type: Any, shape: Shape) -> Any:
    """A declared input: of a numpy type, or of an ONNX type number."""
    if isinstance(array_or_type, int):
        return helper.make_tensor_value_info(name, array_or_type, shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(array_or_type)), shape)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[Any, Shape]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
) -> GraphProto:
    return helper.make_graph(
        list(nodes), "test", [value(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )  # fmt: skip


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[Any, Shape]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
) -> ModelProto:
    return helper.make_model(
        graph(nodes, inputs, outputs, constants), opset_imports=[helper.make_opsetid("", opset)], ir_version=9
    )


def one_node(
    operator: str,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    outputs: int = 1,
    symbolic: bool = False,
    order: Sequence[str] | None = None,
    **attributes: Any,
) -> ModelProto:
    """A model of one node; its operands are the inputs, then the constants, unless `order` says otherwise."""
    names = list(order) if order is not None else [*inputs, *(constants or {})]
    results = [f"out{place}" for place in range(outputs)]
    node = helper.make_node(operator, names, results, name="the_node", **attributes)
    shapes: dict[str, tuple[Any, Shape]] = {}
    for name, array in inputs.items():
        shape: list[int | str | None] = [f"n{extent}" if symbolic and extent != 1 else extent for extent in array.shape]
        shapes[name] = (array.dtype, shape)
    return model([node], shapes, results, constants, opset)


def run(proto: ModelProto | Graph, feeds: Mapping[str, Array]) -> tuple[Array, ...]:
    """Import (with Tilework's own checks), verify, interpret."""
    imported = proto if isinstance(proto, Graph) else import_model(proto, check="own")
    verify(imported)
    return interpret(imported, feeds, black_boxes=FUNCTIONS)


def reference(proto: ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    return list(ReferenceEvaluator(proto).run(None, dict(feeds)))  # type: ignore[arg-type]


def assert_close(got: Sequence[Array], wanted: Sequence[Array], tolerance: float | None = None) -> None:
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        other = np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.kind in "biu":
            np.testing.assert_array_equal(one, other)
            continue
        wide = tolerance if tolerance is not None else {2: 2e-3, 4: 2e-5, 8: 1e-11}[one.dtype.itemsize]
        np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=wide, atol=wide)


def check_against_reference(proto: ModelProto, feeds: Mapping[str, Array], tolerance: float | None = None) -> None:
    assert_close(run(proto, feeds), reference(proto, feeds), tolerance)


def faults_of(source: Any, **options: Any) -> list[tuple[int, str]]:
    """Codes and texts of the faults with which an import fails; it must fail."""
    options.setdefault("check", "own")
    with pytest.raises(FrontendError) as caught:
        import_model(source, **options)
    error = caught.value
    assert str(error).startswith(f"[TW{error.code}]")
    assert all(1101 <= fault.code <= 1199 for fault in error.faults)
    return [(fault.code, str(fault)) for fault in error.faults] or [(error.code, str(error))]


def codes_of(source: Any, **options: Any) -> set[int]:
    return {code for code, _ in faults_of(source, **options)}
