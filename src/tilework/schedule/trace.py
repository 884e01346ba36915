"""Traces: the steps of a schedule as data. A trace serialises to JSON and replays on other programs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, cast

from tilework.errors import ParseError, ScheduleError, UsageError
from tilework.schedule.primitive import Primitive
from tilework.variants import find_variant, list_variants

PACKAGE = "tilework.schedule.primitives"

Trace = tuple[Primitive, ...]


def primitive_named(name: str) -> type[Primitive]:
    """The primitive's class; raises `UsageError` 1001 with the nearest names."""
    return cast("type[Primitive]", find_variant(PACKAGE, name, "PRIMITIVE"))


def primitive_names() -> tuple[str, ...]:
    """Every primitive there is."""
    return list_variants(PACKAGE)


def trace_to_json(trace: Trace) -> str:
    """One object a step: its primitive and its arguments."""
    return json.dumps([{"primitive": step.name, **step.arguments()} for step in trace])


def trace_from_json(text: str) -> Trace:
    """Read what `trace_to_json` wrote; raises `ParseError` 1503 for anything else."""
    try:
        entries: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(1503, f"this is no trace: {error}") from None
    if not isinstance(entries, list):
        raise ParseError(1503, "a trace is a list of steps")
    steps: list[Primitive] = []
    for position, entry in enumerate(cast("list[Any]", entries)):
        if not isinstance(entry, dict) or not isinstance(entry.get("primitive"), str):  # pyright: ignore[reportUnknownMemberType]
            raise ParseError(1503, f"step {position} names no primitive")
        fields = cast("dict[str, Any]", dict(entry))  # pyright: ignore[reportUnknownArgumentType]
        try:
            kind = primitive_named(fields.pop("primitive"))
            known = {f.name for f in dataclasses.fields(kind)}
            if not set(fields) <= known:
                raise ParseError(1503, f"step {position}: {kind.name} has no argument {min(set(fields) - known)!r}")
            steps.append(kind(**{key: _tuples(value) for key, value in fields.items()}))
        except (ScheduleError, UsageError) as error:
            raise ParseError(1503, f"step {position}: {error.message}", hint=error.hint) from None
        except TypeError as error:
            raise ParseError(1503, f"step {position}: {error}") from None
    return tuple(steps)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, cast("list[Any]", value))) if isinstance(value, list) else value
