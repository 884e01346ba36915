"""What one call of an executable needs for itself."""

from __future__ import annotations

from tilework.runtime.frame import Frame
from tilework.runtime.measured import Allocations
from tilework.runtime.memory import Block


class CallState:
    """Checked out for a call and handed back when it went well."""

    __slots__ = ("allocations", "arena", "arena_size", "frame")

    def __init__(self, frame: Frame, allocations: Allocations | None) -> None:
        self.frame = frame
        self.allocations = allocations
        self.arena: Block | None = None
        self.arena_size = -1
        """Bytes that the arena has at least; -1 before it was asked for."""
