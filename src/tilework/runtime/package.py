"""A `.tilework` file: an executable as it was compiled, to be loaded without its model, frontend or compiler.

It is an entry (see `cache.entry`) with the plan as text, the objects, the constants, and what `explain` tells.
Constants are used where the file is mapped. Loading generates no code of the model: the objects are linked, no more.

A package holds machine code, so one is only opened that this user, or root, owns and nobody else may write.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import stat
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilework.cache.entry import DamagedError, Entry, decoded
from tilework.cache.files import replacing
from tilework.cache.folder import owned
from tilework.cache.keys import Key
from tilework.dims import Dim, parse_dim
from tilework.dtypes import dtype_named, dtype_of
from tilework.errors import FileFormatError
from tilework.fast_dataclass import dataclass
from tilework.machine.cpu import CpuMachine
from tilework.machine.host import check_runs_here
from tilework.plan.explanation import (
    BlackBoxExplanation,
    CopyExplanation,
    Explanation,
    Notice,
    RegionExplanation,
)
from tilework.plan.parse import parse_plan
from tilework.plan.plan import Plan
from tilework.plan.text import plan_text
from tilework.runtime.context import Context, default_context
from tilework.runtime.settings import expect, expect_path

if TYPE_CHECKING:
    from tilework.plan.protocols import Array
    from tilework.runtime.executable import Executable

KIND = "package"
LAYOUT = "1"
"""Of the sections below; another layout is refused."""


@dataclass(frozen=True)
class Parts:
    """What an executable was made of beyond its plan, constants and explanation: enough to make it again."""

    objects: tuple[bytes, ...]
    target: CpuMachine
    driver: str
    kernels: tuple[str, ...]
    work: Dim | None
    memory_limit: int | None


def save_package(
    path: Path, plan: Plan, constants: Mapping[str, Array], explanation: Explanation, parts: Parts
) -> None:
    """Write a package, whole or not at all. Raises `FileFormatError` 1901."""
    head = {
        "driver": parts.driver,
        "kernels": parts.kernels,
        "work": None if parts.work is None else str(parts.work),
        "memory_limit": parts.memory_limit,
        "objects": len(parts.objects),
        "constants": [[digest, dtype_of(array).name, list(array.shape)] for digest, array in constants.items()],
        "explanation": _plain(explanation),
    }
    sections: dict[str, bytes | memoryview] = {
        "head": json.dumps(head).encode(),
        "plan": plan_text(plan).encode(),
    }
    sections |= {f"object {n}": content for n, content in enumerate(parts.objects)}
    sections |= {f"constant {digest}": _bytes_of(array) for digest, array in constants.items()}
    target = parts.target
    about = {
        "layout": LAYOUT, "tilework": version("tilework"), "machine": target.name, "triple": target.triple,
        "features": ",".join(sorted(target.available)), "model": plan.name,
    }  # fmt: skip
    raw = Entry(Key(KIND, tuple(sorted(about.items()))), sections).encoded()
    try:
        with replacing(path) as file:
            file.write(raw)
    except OSError as problem:
        raise FileFormatError(1901, f"{path} cannot be written: {problem.strerror}", where=str(path)) from None


def load(path: str | os.PathLike[str], *, context: Context | None = None) -> Executable:
    """Load a `.tilework` file that `Executable.save` wrote. Its code is linked, not generated, and no model is read.

    The executable serves the sizes that its plan allows; sizes for which the compiler would compile once more are
    refused, as there is no model to compile.

    Args:
        path: the file. You (or root) must own it, and nobody else may write it.
        context: where code, threads and memory live; the process's own by default.

    Raises:
        UsageError: 1002, an argument makes no sense.
        FileFormatError: 1903, the file cannot be read, is no package, is damaged, or was written by another version;
            1904, it belongs to another user, or others may write it.
        CodegenError: 1764, this processor cannot run its code.
    """
    if context is not None:
        expect("context", context, Context, "give a tilework.Context, or leave it out")
    place = expect_path("path", path)
    entry = _read(place)
    about = dict(entry.key.parts)
    if entry.key.kind != KIND or about.get("layout") != LAYOUT or about.get("tilework") != version("tilework"):
        written = (
            f"Tilework {about.get('tilework', '?')}" if entry.key.kind == KIND else f"an entry of {entry.key.kind}"
        )
        raise _unreadable(place, f"it was written by {written}, and this is Tilework {version('tilework')}")
    try:
        check_runs_here(_machine(about))
        return _made(entry, context if context is not None else default_context())
    except (KeyError, ValueError, TypeError) as problem:  # whole, but by no writer of ours
        raise _unreadable(place, f"its parts do not fit together ({problem})") from None


def _made(entry: Entry, owner: Context) -> Executable:
    from tilework.runtime.executable import Executable

    head: dict[str, Any] = json.loads(bytes(entry.sections["head"]))
    plan = parse_plan(bytes(entry.sections["plan"]).decode())
    objects = tuple(bytes(entry.sections[f"object {n}"]) for n in range(head["objects"]))
    constants: dict[str, Any] = {}
    for digest, dtype, shape in head["constants"]:
        raw = entry.sections[f"constant {digest}"]
        constants[digest] = np.frombuffer(raw, dtype_named(dtype).numpy).reshape(shape)
    names = (head["driver"], *head["kernels"])
    code = owner.jit.load(objects, names, uses=[owner.pool.code, owner.native.code])
    work = None if head["work"] is None else parse_dim(head["work"])
    parts = Parts(objects, _machine(dict(entry.key.parts)), head["driver"], tuple(head["kernels"]), work,
                  head["memory_limit"])  # fmt: skip
    return Executable(
        plan, code, code[parts.driver], constants, owner, _explanation(head["explanation"]), work=work,
        memory_limit=parts.memory_limit, step_entries={name: code[name] for name in parts.kernels}, parts=parts,
    )  # fmt: skip


# -- files -------------------------------------------------------------------------------------------------------------
def _read(path: Path) -> Entry:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise _unreadable(path, problem.strerror or str(problem)) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _unreadable(path, "it is no file")
        if not owned(facts):
            raise FileFormatError(
                1904, f"{path} belongs to another user, or others may write it: the machine code in it is not trusted",
                where=str(path),
            )  # fmt: skip
        if not facts.st_size:
            raise _unreadable(path, "it is empty")
        # private pages: whoever changes the file later does not change what is computed unless memory gets short
        return decoded(memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)))
    except (OSError, ValueError) as problem:
        raise _unreadable(path, str(problem)) from None
    except DamagedError as problem:
        raise _unreadable(path, str(problem)) from None
    finally:
        os.close(descriptor)


def _unreadable(path: Path, why: str) -> FileFormatError:
    return FileFormatError(1903, f"{path} cannot be read: {why}", where=str(path))


# -- parts -------------------------------------------------------------------------------------------------------------
def _bytes_of(array: Array) -> memoryview:
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def _machine(about: Mapping[str, str]) -> CpuMachine:
    features = ",".join(f"+{name}" for name in about["features"].split(",") if name)
    return CpuMachine(about["machine"], about["triple"], "", features, 128, 16, ())


def _plain(value: Any) -> Any:
    """What JSON can say: dataclasses as objects of their fields, tuples as lists, dims as `{"dim": text}`."""
    if isinstance(value, Dim):
        return {"dim": str(value)}
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
        return parse_dim(cast("dict[str, str]", value)["dim"])
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
