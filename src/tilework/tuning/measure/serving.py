"""How a child process serves its parent: lines of JSON in, lines of JSON out, until the parent goes away.

It imports nothing but the standard library: what a child's memory holds is up to what it serves.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

Say: TypeAlias = Callable[[dict[str, Any]], None]
"""Tells the parent what is being done, before the answer."""


def serve(answer: Callable[[dict[str, Any], Say], dict[str, Any]]) -> None:
    """Answer every message of the parent by what `answer` makes of it, which has an `outcome`.

    The process was started with two file descriptors as its arguments: where answers go, and a pipe whose other end the
    parent holds while it lives.
    """
    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    end_with_parent(int(sys.argv[2]))

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")

    say({"ready": True})
    for line in sys.stdin:
        say(answer(json.loads(line), say))


def end_with_parent(descriptor: int) -> None:
    """End this process as soon as nobody holds the other end of a pipe."""

    def wait() -> None:
        os.read(descriptor, 1)
        os._exit(0)

    threading.Thread(target=wait, name="tilework-parent", daemon=True).start()
