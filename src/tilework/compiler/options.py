"""What a user may ask of a compilation, composed of what each stage may be asked."""

from __future__ import annotations

from dataclasses import dataclass

from tilework.numerics import Level


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation.

    `numerics`: the values' contract. `machine`: a name in `machine/`, `"host"` for this one. `checked`: test every
    access of generated code against its buffer's bounds (slow; for tests). `memory_limit`: bytes that one call's arena
    and outputs may take together; a call that needs more is refused.
    """

    numerics: Level = "default"
    machine: str = "host"
    checked: bool = False
    memory_limit: int | None = None
