"""A sign of life for a person who waits longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

PATIENCE = 1.0
"""Seconds before anything is shown."""


@contextmanager
def working(text: str, patience: float = PATIENCE) -> Generator[None]:
    """Show `text` and a moving sign on standard error while the block takes longer than `patience` seconds.

    Only where standard error is a terminal. `NO_COLOR` and a dumb terminal are respected.
    """
    if sys.stderr is None or not sys.stderr.isatty():  # pyright: ignore[reportUnnecessaryComparison] - None: closed
        yield
        return
    done = threading.Event()
    shower = threading.Thread(target=_show, args=(text, done, patience), name="tilework-progress", daemon=True)
    shower.start()
    try:
        yield
    finally:
        done.set()
        shower.join()


def _show(text: str, done: threading.Event, patience: float) -> None:
    if done.wait(patience):
        return
    from rich.console import Console  # costs a tenth of a second: only for who waits anyway
    from rich.markup import escape

    with Console(file=sys.stderr).status(escape(text)):
        done.wait()
