"""What a user may ask of a compilation, composed of what each stage may be asked."""

from __future__ import annotations

from tilework.fast_dataclass import dataclass
from tilework.numerics import Level, numerics
from tilework.runtime.settings import expect, whole_number


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation. Raises `UsageError` 1002 for a value that makes no sense.

    `numerics`: the values' contract. `machine`: a name in `machine/`, `"host"` for this one. `checked`: test every
    access of generated code against its buffer's bounds (slow; for tests). `memory_limit`: bytes that one call's arena
    and outputs may take together; a call that needs more is refused.
    """

    numerics: Level = "default"
    machine: str = "host"
    checked: bool = False
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        expect("numerics", self.numerics, str, "use 'strict', 'default' or 'fast'")
        numerics(self.numerics)
        expect("machine", self.machine, str, "give the name of a machine, e.g. 'host' or 'x86-64-v3'")
        expect("checked", self.checked, bool, "use True or False")
        if self.memory_limit is not None:
            object.__setattr__(self, "memory_limit", whole_number("memory_limit", self.memory_limit, "bytes"))
