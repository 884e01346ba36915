"""The frame of one call: the int64 slots that a plan's driver reads and writes."""

from __future__ import annotations

import ctypes

from tilework.codegen.cpu.gate import POLL_INTERVAL_NS
from tilework.runtime.native import PollState

ERROR_SLOT = 0
"""The call's error word; 0 while all is well, else `code << 32 | detail`."""
POOL_SLOT = 1
"""Address of the thread pool, or 0: parallel regions then run in the caller."""
POLL_SLOT = 2
"""Address of the call's `PollState`, or 0: the call then cannot be interrupted."""
FIRST_SLOT = 3
"""The first slot that the plan itself uses: its symbols, then its buffers."""


class Frame:
    """Slots for one call at a time; `words[slot]` reads and writes them, `address` is what the driver gets.

    A frame can be used for one call after another. `poll` is None for a frame whose calls cannot be interrupted.
    """

    __slots__ = ("address", "poll", "words")

    def __init__(self, slots: int, pool: int = 0, poll_interval_ns: int | None = POLL_INTERVAL_NS) -> None:
        """A frame of `slots` slots, the three fixed ones included; `pool` is a thread pool's address."""
        self.words: ctypes.Array[ctypes.c_int64] = (ctypes.c_int64 * max(slots, FIRST_SLOT))()
        self.address = ctypes.addressof(self.words)
        self.words[POOL_SLOT] = pool
        self.poll = None if poll_interval_ns is None else PollState(poll_interval_ns)
        self.words[POLL_SLOT] = self.poll.address if self.poll else 0

    @property
    def error(self) -> tuple[int, int] | None:
        """The code and detail of the fault that compiled code reported, or None."""
        word = int(self.words[ERROR_SLOT])
        return (word >> 32, word & 0xFFFFFFFF) if word else None
