"""Python's search for cyclic garbage, put off while it would find none."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Generator[None]:
    """No search for cyclic garbage meanwhile. Reference counts free what they always do.

    For importing modules, whose classes and functions stay anyway, and for compiling: trees of small immutable nodes
    form no cycles, but make the search look at all of them again and again. What is there afterwards counts as old:
    the next search for what died young does not begin with all of it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # else it would thaw what others froze
                gc.freeze()
                gc.unfreeze()
            gc.enable()
