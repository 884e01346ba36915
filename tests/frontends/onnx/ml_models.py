"""Small models of ai.onnx.ml for the tests, compiled or interpreted, and ensembles of trees walked one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from onnx import ModelProto, TensorProto, TypeProto, helper

import tilework
from tilework.frontends.onnx.black_boxes import FUNCTIONS
from tilework.frontends.onnx.importer import import_model
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify

Arrays = Mapping[str, Any]


def input_type(value: Any, symbolic: bool) -> TypeProto:
    """The ONNX type of an array, or of a map by its first entry."""
    if isinstance(value, dict):
        (key, held), *_ = cast("dict[Any, Any]", value).items()
        kind = TensorProto.STRING if isinstance(held, str) else TensorProto.FLOAT
        keys = TensorProto.STRING if isinstance(key, str) else TensorProto.INT64
        return helper.make_map_type_proto(keys, helper.make_tensor_type_proto(kind, None))
    strings = value.dtype.kind == "O"
    kind = TensorProto.STRING if strings else helper.np_dtype_to_tensor_dtype(value.dtype)
    shape = [f"n{extent}" if symbolic and place == 0 else extent for place, extent in enumerate(value.shape)]
    return helper.make_tensor_type_proto(kind, shape)


def ml_model(
    operator: str, inputs: Arrays, outputs: int = 1, version: int = 3, symbolic: bool = False, **attributes: Any
) -> ModelProto:
    """A model of one node of ai.onnx.ml; with `symbolic` the number of rows is free."""
    results = [f"out{place}" for place in range(outputs)]
    node = helper.make_node(operator, list(inputs), results, name="the_node", domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node], "test", [helper.make_value_info(n, input_type(v, symbolic)) for n, v in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def interpreted(proto: ModelProto, inputs: Arrays) -> tuple[Any, ...]:
    """Import with Tilework's own checks, verify, interpret."""
    graph = import_model(proto, check="own")
    verify(graph)
    with np.errstate(all="ignore"):
        return interpret(graph, inputs, black_boxes=FUNCTIONS)


def compiled(proto: ModelProto, inputs: Arrays, checked: bool = False) -> tuple[Any, ...]:
    """Compile and call."""
    return tuple(tilework.compile(proto, checked=checked)(**inputs))


def rows(random: np.random.Generator, count: int, features: int, kind: Any = np.float32) -> Any:
    """Small integers held in floats, some of them NaN, infinite or -0.0."""
    found = random.integers(-3, 4, (count, features)).astype(kind)
    if found.dtype.kind == "f":
        for odd, share in ((np.nan, 0.1), (np.inf, 0.04), (-np.inf, 0.04), (-0.0, 0.04)):
            found[random.random(found.shape) < share] = odd
    return found


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def draw_trees(
    random: np.random.Generator, trees: int, depth: int, features: int, targets: int, kind: str,
    modes: Sequence[str] = MODES, several: bool = False, own_target: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Attributes of random trees. `several`: leaves with two weights; `own_target`: one target per tree."""
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
             "missing_value_tracks_true")  # fmt: skip
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    votes: list[tuple[int, int, int, float]] = []

    def grow(tree: int, left: int, made: list[int]) -> int:
        own, place = len(made), len(nodes["nodes_treeids"])
        made.append(own)
        for column in nodes.values():
            column.append(0)
        leaf = left == 0 or (left < depth and random.random() < 0.2)
        nodes["nodes_treeids"][place], nodes["nodes_nodeids"][place] = tree, own
        nodes["nodes_values"][place] = float(random.integers(-2, 3))
        nodes["nodes_modes"][place] = "LEAF" if leaf else str(random.choice(list(modes)))
        nodes["nodes_missing_value_tracks_true"][place] = int(random.random() < 0.5)
        if leaf:
            count = 2 if several else 1
            drawn = [tree % targets] if own_target else sorted(set(random.integers(0, targets, count).tolist()))
            votes.extend((tree, own, target, float(random.integers(-4, 5))) for target in drawn)
        else:
            nodes["nodes_featureids"][place] = int(random.integers(features))
            nodes["nodes_truenodeids"][place] = grow(tree, left - 1, made)
            nodes["nodes_falsenodeids"][place] = grow(tree, left - 1, made)
        return own

    for tree in range(trees):
        grow(tree, depth, [])
    columns = zip(("treeids", "nodeids", "ids", "weights"), zip(*votes, strict=True), strict=True)
    return {**nodes, **{f"{kind}_{name}": list(column) for name, column in columns}}


def holds(mode: str, value: float, number: float, tracks: bool) -> bool:
    """Whether a node's condition holds."""
    if math.isnan(value) and tracks:
        return True
    return {
        "BRANCH_LEQ": value <= number, "BRANCH_LT": value < number, "BRANCH_GTE": value >= number,
        "BRANCH_GT": value > number, "BRANCH_EQ": value == number, "BRANCH_NEQ": value != number,
    }[mode]  # fmt: skip


def weights_of(attributes: Mapping[str, Any], row: Any, kind: str) -> list[list[tuple[int, float]]]:
    """The (target, weight) pairs of the leaf that a row ends in, for each tree."""
    names = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    found: list[list[tuple[int, float]]] = []
    for tree in dict.fromkeys(attributes["nodes_treeids"]):
        place = names.index((tree, 0))
        while attributes["nodes_modes"][place] != "LEAF":
            tracks = bool(attributes["nodes_missing_value_tracks_true"][place])
            value = float(row[attributes["nodes_featureids"][place]])
            held = holds(attributes["nodes_modes"][place], value, attributes["nodes_values"][place], tracks)
            way = attributes["nodes_truenodeids" if held else "nodes_falsenodeids"][place]
            place = names.index((tree, way))
        leaf = names[place]
        votes = zip(*(attributes[f"{kind}_{n}"] for n in ("treeids", "nodeids", "ids", "weights")), strict=True)
        found.append([(target, weight) for t, node, target, weight in votes if (t, node) == leaf])
    return found
