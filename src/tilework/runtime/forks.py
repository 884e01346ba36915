"""Being told, in a child process, that one was forked."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def in_child(method: Callable[[], None]) -> None:
    """Call a bound method in every child of a fork from now on, for as long as its object lives.

    Other threads do not exist in the child, and a lock that one of them held stays locked: the method's work is to
    replace locks. (Holding locks across the fork instead would need one order of all locks, finalizers included.)
    """
    if hasattr(os, "register_at_fork"):
        reference = weakref.WeakMethod(method)  # hooks cannot be taken back, so they must not keep the object

        def hook() -> None:
            alive = reference()
            if alive is not None:
                alive()

        os.register_at_fork(after_in_child=hook)
