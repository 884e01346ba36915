"""Finds a machine by its name."""

from __future__ import annotations

import difflib

from tilework.errors import UsageError
from tilework.machine.cpu import CpuMachine
from tilework.machine.host import detect
from tilework.variants import find_variant, list_variants

_NO_MACHINES = frozenset(("cpu", "host", "finder", "instructions"))


def names() -> tuple[str, ...]:
    """Names of the machines there are data for, and `host`."""
    found = [name for name in list_variants("tilework.machine") if name not in _NO_MACHINES]
    return ("host", *(name.replace("_", "-") for name in found))


def machine(name: str) -> CpuMachine:
    """The machine called `name` (`host`: this one; `-` and `_` are one); raises `UsageError` 1620 with the names
    there are.
    """
    if name == "host":
        return detect()
    known = name.replace("_", "-")
    if known not in names():
        near = difflib.get_close_matches(name, names(), 3, 0.4)
        raise UsageError(1620, f"no machine is called {name!r}", hint=f"use {' or '.join(near) or ', '.join(names())}")
    found = find_variant("tilework.machine", known.replace("-", "_"), "MACHINE")
    assert isinstance(found, CpuMachine)
    return found
