"""How long a thread of Python keeps the interpreter's lock while another waits for it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from tilework.runtime.forks import in_child

TURN = 5e-5
"""Seconds of a short turn."""


class Turns:
    """Makes turns short for a while. The interval is the process's: each of several of these, in any threads, changes
    back what it changed itself, and only while it is as it left it.
    """

    def __init__(self) -> None:
        self._usual: float | None = None
        """What the interval was before this object changed it."""
        in_child(self._back)  # the thread that would change it back may not be there

    @contextmanager
    def short(self) -> Generator[None]:
        """Threads that wait for the interpreter's lock get it soon.

        Making an object is one long call without the lock and some twenty short ones, each of which would wait 5 ms
        (what Python gives the thread that lowers), as long as the call itself.
        """
        before = sys.getswitchinterval()
        if before < 2 * TURN:
            yield
            return
        try:
            self._usual = before
            sys.setswitchinterval(TURN)
            yield
        finally:
            self._back()

    def _back(self) -> None:
        usual, self._usual = self._usual, None
        if usual is not None and abs(sys.getswitchinterval() - TURN) < 1e-6:  # it is kept in whole microseconds
            sys.setswitchinterval(usual)
