"""Python's search for cyclic garbage, put off while it would find none."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Generator[None]:
    """No search for cyclic garbage meanwhile. Reference counts free what they always do.

    For importing modules, whose classes and functions stay anyway, and for compiling: trees of small immutable nodes
    form no cycles, but make the search look at all of them again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
