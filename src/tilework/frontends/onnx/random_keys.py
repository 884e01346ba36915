"""Keys of random numbers: from a seed, or fresh at every call; other ones in every trip of a loop."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np

from tilework import dtypes
from tilework.dims import dim
from tilework.frontends.onnx.check import scopes
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.schema import STANDARD_DOMAINS
from tilework.frontends.onnx.words import PROVIDER
from tilework.graph.graph import Value
from tilework.graph.types import TensorType

if TYPE_CHECKING:
    from onnx import ModelProto

DRAWING = frozenset({
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip
"""Operators of ai.onnx that draw random numbers; dropouts may."""

_MIX = 0x9E3779B97F4A7C15
"""An odd number near 2**64 / golden ratio: products with it are far apart."""


def draws_without_seed(model: ModelProto) -> bool:
    """Whether a node of a model, subgraphs and functions included, may draw numbers and has no seed."""
    nodes = [node for scope in scopes(model) for node in scope.graph.node]
    nodes += [node for function in model.functions for node in function.node]
    return any(
        node.domain in STANDARD_DOMAINS
        and (node.op_type in DRAWING - {"Dropout"} or (node.op_type == "Dropout" and len(node.input) > 2))
        and not any(attribute.name == "seed" for attribute in node.attribute)
        for node in nodes
    )


def add_fresh_key(emit: Emitter) -> None:
    """A black box before the graph that draws a key for each call; made first, so that subgraphs see it."""
    kind = TensorType((dim(1),), dtypes.uint64)
    (emit.fresh_key,) = emit.builder.black_box(
        "FreshKey", PROVIDER, results=[kind], location="random key", names=[emit.builder.fresh("random_key")]
    )


def random_key(emit: Emitter, seed: int | None) -> Value:
    """The key of one node, uint64[2]: its seed, or the call's fresh key and the number of the node."""
    root = emit
    trips: list[Value] = []
    while True:
        if root.trip is not None:
            trips.append(root.trip)
        if root.around is None:
            break
        root = root.around
    if seed is not None:
        first, number = emit.constant(np.array([seed], np.uint64)), 0
    else:
        root.drawn += 1
        first, number = root.fresh_key, root.drawn
        if first is None:  # in a body that the package onnx has for an operator
            first = emit.constant(np.array([secrets.randbits(64)], np.uint64))
    second = emit.constant(np.array([number], np.uint64))
    for trip in reversed(trips):
        place = emit.convert(emit.reshape(trip, (1,)), dtypes.uint64)
        mixed = emit.apply("multiply", second, emit.constant(np.array([_MIX], np.uint64)))
        second = emit.apply("add", emit.apply("add", mixed, place), emit.constant(np.array([1], np.uint64)))
    return emit.concatenate([first, second], 0)
