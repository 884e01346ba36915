"""What a module tells of a model: run in a process of its own, it prints one JSON object as its last line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SHOWN = 160
"""Characters of a failure that are told."""


def told_by(module: str, *arguments: str, seconds: float) -> dict[str, Any]:
    """The object that `python -m MODULE ARGUMENTS` prints; `status` is "crash" or "hangs" where there is none, and
    `why` says more.
    """
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"status": "hangs", "why": f"longer than {seconds:g} s"}
    if done.returncode:
        problems = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        return {"status": "crash", "why": problems[-1][:SHOWN]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
