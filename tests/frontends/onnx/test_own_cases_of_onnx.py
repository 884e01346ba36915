"""The cases that the package onnx brings for each operator, through the importer and the interpreter.

Every case of an operator that is imported must give the expected values, or be refused with a code that says why;
shapes, axes and the like that a case passes as inputs are made constants. Once with fixed and once with free dims.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case import node as node_cases

from tests.frontends.onnx.models import run
from tilework.errors import FrontendError
from tilework.frontends.onnx.check import opsets
from tilework.frontends.onnx.converters import converters
from tilework.frontends.onnx.functions import has_body
from tilework.frontends.onnx.importer import import_model

PARAMETERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
REFUSALS = {1105, 1106, 1107, 1108, 1115, 1116, 1119, 1120, 1121, 1123}


ELSEWHERE = (
    "_", "adagrad", "adam", "ai_onnx_ml", "causal", "flex", "gridsample", "gru", "image_decoder",
    "linearattention", "loop", "lstm", "momentum", "nonmaxsuppression", "resize", "rnn",
    "scan", "sequence", "softmaxcrossentropy", "string", "tfidf", "topk", "unique",
)  # fmt: skip
"""Beginnings of the names of modules whose operators are not imported: making their cases takes most of the time."""


@cache
def cases() -> list[Any]:
    known = {*converters(), "If"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(node_cases.__path__):
            if not module.name.startswith(ELSEWHERE):
                importlib.import_module(f"{node_cases.__name__}.{module.name}")
    made: list[Any] = vars(node_cases)["_NodeTestCases"]
    return [
        case
        for case in made
        # the bodies of functions ("_expanded") are other operators put together
        if case.model is not None
        and not case.name.endswith("_expanded")
        # ONNX promises no particular random numbers
        and not case.name.startswith(("test_bernoulli", "test_training_dropout"))
        and all(node.op_type in known or has_body(node, opsets(case.model)) for node in case.model.graph.node)
    ]


def as_array(held: Any) -> Any:
    return numpy_helper.to_array(held) if isinstance(held, TensorProto) else np.asarray(held)


def with_constants(proto: ModelProto, inputs: list[Any]) -> ModelProto:
    changed = ModelProto()
    changed.CopyFrom(proto)
    numbers_too = any(node.op_type in ("Range", "OneHot") for node in proto.graph.node)
    for declared, held in zip(proto.graph.input, inputs, strict=False):
        tensor = held if isinstance(held, TensorProto) else numpy_helper.from_array(np.asarray(held))
        if tensor.data_type in PARAMETERS or numbers_too:
            added = changed.graph.initializer.add()
            added.CopyFrom(tensor)
            added.name = declared.name
    return changed


def with_free_dims(proto: ModelProto) -> ModelProto:
    changed = ModelProto()
    changed.CopyFrom(proto)
    for declared in changed.graph.input:
        for extent in declared.type.tensor_type.shape.dim:
            if extent.dim_value > 1:
                extent.dim_param = f"n{extent.dim_value}"
    return changed


@pytest.mark.parametrize("free", [False, True], ids=["fixed dims", "free dims"])
def test_every_case(free: bool) -> None:
    outcome: Counter[str] = Counter()
    wrong: list[str] = []
    for case in cases():
        inputs, expected = case.data_sets[0]
        proto = with_free_dims(case.model) if free else case.model
        try:
            try:
                imported = import_model(proto, check="own")
            except FrontendError as error:
                if not {fault.code for fault in error.faults} & {1116, 1120}:
                    raise
                imported = import_model(with_constants(proto, inputs), check="own")
        except FrontendError as error:
            wrong.extend(f"{case.name}: {fault}" for fault in error.faults if fault.code not in REFUSALS)
            outcome["refused"] += 1
            continue
        names = {declared.name for declared in imported.inputs}
        feeds = {
            declared.name: as_array(held)
            for declared, held in zip(case.model.graph.input, inputs, strict=False)
            if declared.name in names
        }
        for got, held in zip(run(imported, feeds), expected, strict=True):
            wanted = as_array(held)
            low = wanted.dtype.itemsize <= 2 and wanted.dtype.kind not in "biu"
            tolerance = max(case.rtol, 2e-2 if low else 1e-5)
            same = got.dtype == wanted.dtype and got.shape == wanted.shape
            one, other = got.astype(np.float64), wanted.astype(np.float64)
            if not same or not np.allclose(one, other, rtol=tolerance, atol=max(case.atol, 1e-6), equal_nan=True):
                wrong.append(case.name)
        outcome["right"] += 1
    assert not wrong
    assert outcome["right"] > (4 if free else 8) * outcome["refused"]
    assert outcome["right"] > 400
