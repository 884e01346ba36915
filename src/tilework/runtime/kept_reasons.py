"""Kept on disk: that a model is compiled at each call, what it takes, and why no compilation serves all calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from tilework.cache.keys import Key
from tilework.cache.store import Store
from tilework.dims import Dim, parse_dim
from tilework.dtypes import dtype_named
from tilework.errors import Fault, FrontendError, UsageError
from tilework.graph.types import OpaqueType, TensorType

PER_CALL = "model of calls"
"""The kind of these entries."""
Inputs: TypeAlias = "tuple[tuple[str, TensorType | OpaqueType], ...]"
_WHY = "why"
_MODEL = "\0model\0"
"""Stands for what the model is called: another file of the same bytes is called otherwise."""


def kept_per_call(store: Store, key: Key, called: str) -> tuple[Inputs, FrontendError] | None:
    """The inputs of a model and the error that says why it is compiled at each call; None where there is no entry.

    One that does not fit together is set aside. `called`: what errors call the model.
    """
    entry = store.mapped(key, counted=False)
    if entry is None:
        return None
    try:
        told = json.loads(bytes(entry.sections[_WHY]))
        inputs = tuple((name, _type(kind)) for name, kind in told["inputs"])
        reason = FrontendError(
            told["code"], told["message"].replace(_MODEL, called), where=told["where"].replace(_MODEL, called),
            hint=told["hint"], faults=[Fault(*one) for one in told["faults"]], decided_by=told["decided_by"],
        )  # fmt: skip
    except (KeyError, ValueError, TypeError, AttributeError, UsageError) as problem:
        store.set_aside_entry(key, f"its parts do not fit together ({problem!r})")
        return None
    return inputs, reason


def keep_per_call(store: Store, key: Key, called: str, inputs: Inputs, reason: FrontendError) -> None:
    """Keep that under a key; not where a name of a dimension has no text form that could be read back."""

    def nameless(text: str) -> str:
        return text.replace(called, _MODEL) if called else text

    told = {
        "inputs": [[name, _written(kind)] for name, kind in inputs],
        "code": reason.code, "message": nameless(reason.message), "where": nameless(reason.where), "hint": reason.hint,
        "faults": [[one.code, one.where, one.message] for one in reason.faults], "decided_by": reason.decided_by,
    }  # fmt: skip
    try:
        read_back = all(_type(_written(kind)) == kind for _, kind in inputs)
    except UsageError:
        return
    if read_back:
        store.put(key, {_WHY: json.dumps(told).encode()})


def _written(kind: TensorType | OpaqueType) -> list[Any]:
    return [kind.dtype.name, list(map(str, kind.shape))] if isinstance(kind, TensorType) else [kind.kind]


def _type(told: Sequence[Any]) -> TensorType | OpaqueType:
    if len(told) == 1:
        return OpaqueType(told[0])
    name, shape = told
    extents: list[Dim] = [parse_dim(extent) for extent in shape]
    return TensorType(tuple(extents), dtype_named(name))
