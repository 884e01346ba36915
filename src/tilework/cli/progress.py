"""A sign of life for a person who waits longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds before anything is shown."""
_LOOK = 0.1
"""Seconds between two looks at what is being done."""


class _Work:
    """What is being done, as one thread says it and another shows it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.done = threading.Event()

    def tell(self, text: str) -> None:
        self.text = text


@contextmanager
def working(text: str, patience: float = PATIENCE) -> Generator[Callable[[str], None]]:
    """Show `text` and a moving sign on standard error while the block takes longer than `patience` seconds; what the
    block is given changes the text.

    Only where standard error is a terminal. `NO_COLOR` and a dumb terminal are respected.
    """
    work = _Work(text)
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] - None: closed
        yield work.tell
        return
    shower = threading.Thread(target=_show, args=(work, patience), name="tilework-progress", daemon=True)
    shower.start()
    try:
        yield work.tell
    finally:
        work.done.set()
        shower.join()


def _show(work: _Work, patience: float) -> None:
    if work.done.wait(patience):
        return
    from rich.console import Console  # costs a tenth of a second: only for who waits anyway
    from rich.markup import escape

    shown = work.text
    with Console(file=sys.stderr).status(escape(shown)) as status:
        while not work.done.wait(_LOOK):
            if work.text != shown:
                shown = work.text
                status.update(escape(shown))
