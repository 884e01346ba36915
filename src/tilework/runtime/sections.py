"""An executable as the sections of an entry, and back: plan, objects, constants, and what `explain` tells.

Constants are used where the entry is mapped. Nothing of the model is compiled, and what no call needs (steps, buffers,
what `explain` tells) is read when somebody asks: the entry's checksum says that it is as it was written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilework.cache.entry import Entry
from tilework.codegen.cpu.frame_layout import FrameLayout
from tilework.dims import Dim, parse_dim
from tilework.dtypes import dtype_named, dtype_of
from tilework.fast_dataclass import dataclass
from tilework.graph.types import OpaqueType, TensorType
from tilework.machine.cpu import CpuMachine
from tilework.plan.explanation import (
    BlackBoxExplanation,
    CopyExplanation,
    Explanation,
    Notice,
    RegionExplanation,
)
from tilework.plan.plan import Plan
from tilework.plan.text import plan_text
from tilework.plan.written import WrittenPlan
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.overriding import Overriding
from tilework.runtime.ports import Port

if TYPE_CHECKING:
    from tilework.plan.protocols import Array

LAYOUT = "3"
"""Of the sections; another layout is refused."""

_DIM = "."
"""Marks a dim among what JSON says; no field or symbol has this name."""

Sections = Mapping[str, "bytes | memoryview"]


@dataclass(frozen=True)
class Parts:
    """What an executable was made of beyond its plan, constants and explanation: enough to make it again."""

    objects: tuple[bytes, ...]
    target: CpuMachine
    driver: str
    kernels: tuple[str, ...]
    work: Dim | None
    memory_limit: int | None


def sections_of(
    plan: Plan,
    layout: FrameLayout,
    constants: Mapping[str, Array],
    explanation: Explanation,
    parts: Parts,
    overridable: Sequence[Port] = (),
) -> Sections:
    """The sections; constants are those of the executable, not copied. `overridable`: the initialisers that a call of
    the model may give.
    """
    head = {
        "driver": parts.driver,
        "kernels": parts.kernels,
        "work": None if parts.work is None else str(parts.work),
        "memory_limit": parts.memory_limit,
        "objects": len(parts.objects),
        "overridable": [_port_text(port) for port in overridable],
        "constants": [[digest, dtype_of(array).name, list(array.shape)] for digest, array in constants.items()],
        "frame": {field.name: getattr(layout, field.name) for field in dataclasses.fields(layout)},
    }
    text = plan.text if isinstance(plan, WrittenPlan) else None
    sections: dict[str, bytes | memoryview] = {
        "head": json.dumps(head).encode(),
        "plan": (text if text is not None else plan_text(plan)).encode(),
        "explanation": json.dumps(_plain(explanation)).encode(),
    }
    sections |= {f"object {n}": content for n, content in enumerate(parts.objects)}
    return sections | {f"constant {digest}": _bytes_of(array) for digest, array in constants.items()}


def about_target(target: CpuMachine) -> dict[str, str]:
    """The parts of a key that say which machine may run the code."""
    return {"machine": target.name, "triple": target.triple, "features": ",".join(sorted(target.available))}


def target_of(entry: Entry) -> CpuMachine:
    """The machine that an entry's code is for, as far as the entry says. Raises `KeyError`."""
    about = dict(entry.key.parts)
    features = ",".join(f"+{name}" for name in about["features"].split(",") if name)
    return CpuMachine(about["machine"], about["triple"], "", features, 128, 16, ())


def executable_of(entry: Entry, owner: Context, target: CpuMachine, memory_limit: int | None = None) -> Executable:
    """The executable of an entry, its code made for `target`, with another `memory_limit` where one is given. Raises
    `KeyError`, `ValueError` or `TypeError` where its parts do not fit together; `CodegenError` 168x for objects that
    cannot be linked, `ParseError` 1419 for a plan that is none.
    """
    sections = entry.sections
    head: dict[str, Any] = json.loads(bytes(sections["head"]))
    plan = WrittenPlan.of(bytes(sections["plan"]).decode())
    objects = tuple(bytes(sections[f"object {n}"]) for n in range(head["objects"]))
    told = sections["explanation"]
    constants: dict[str, Any] = {}
    for digest, dtype, shape in head["constants"]:
        raw = sections[f"constant {digest}"]
        constants[digest] = np.frombuffer(raw, dtype_named(dtype).numpy).reshape(shape)
    layout = FrameLayout(**{name: _revived(value) for name, value in head["frame"].items()})
    names = (head["driver"], *head["kernels"])
    code = owner.jit.load(objects, names, uses=[owner.pool.code, owner.native.code])
    work = None if head["work"] is None else parse_dim(head["work"])
    limit = memory_limit if memory_limit is not None else head["memory_limit"]
    parts = Parts(objects, target, head["driver"], tuple(head["kernels"]), work, limit)
    executable = Executable(
        plan, code, code[parts.driver], constants, owner, lambda: _explanation(json.loads(bytes(told))), work=work,
        memory_limit=parts.memory_limit, step_entries={name: code[name] for name in parts.kernels}, parts=parts,
        layout=layout,
    )  # fmt: skip
    ports = head["overridable"]
    if ports:
        executable.overriding = Overriding(lambda: tuple(_port(*port) for port in ports), None)
    return executable


def _port_text(port: Port) -> list[object]:
    """Name, element type and extents; what is no tensor has none."""
    if isinstance(port.type, OpaqueType):
        return [port.name, port.type.kind, None]
    return [port.name, port.type.dtype.name, [str(extent) for extent in port.type.shape]]


def _port(name: str, kind: str, extents: Sequence[str] | None) -> Port:
    if extents is None:
        return Port(name, OpaqueType(kind))
    return Port(name, TensorType(tuple(map(parse_dim, extents)), dtype_named(kind)))


def _bytes_of(array: Array) -> memoryview:
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def _plain(value: Any) -> Any:
    """What JSON can say: dataclasses as objects of their fields, tuples as lists, dims as `{".": text}`."""
    if isinstance(value, Dim):
        return {_DIM: str(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in cast("tuple[Any, ...]", value)]
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _revived(value: Any) -> Any:
    """Lists as tuples, and dims as dims."""
    if isinstance(value, list):
        return tuple(_revived(one) for one in cast("list[Any]", value))
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        return parse_dim(found[_DIM]) if _DIM in found else found
    return value


def _explanation(found: Mapping[str, Any]) -> Explanation:
    kinds = {
        "regions": RegionExplanation, "black_boxes": BlackBoxExplanation, "copies": CopyExplanation, "notices": Notice,
    }  # fmt: skip
    fields: dict[str, Any] = {}
    for name, value in found.items():
        kind = kinds.get(name)
        if kind is None:
            fields[name] = _revived(value)
        else:
            fields[name] = tuple(kind(**{n: _revived(v) for n, v in one.items()}) for one in value)
    return Explanation(**fields)
