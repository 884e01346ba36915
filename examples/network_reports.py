"""For each network of a demonstration, a page that tells where the time of a call goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilework.cost.roofline import Roofline
from tilework.errors import RunError
from tilework.report.page.build import model_page
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape
from tilework.tuning.measure.probe import probe

Array = np.ndarray[Any, np.dtype[Any]]
CALLS = 3
"""Calls that a network is timed over, as a whole and step by step."""


def write_reports(folder: Path, networks: Mapping[str, tuple[Executable | PerShape, Array | None]]) -> list[Path]:
    """Time each network on the array beside it, write a page of each, and return the files; without an array, none.

    What the machine can do is measured once for all of them (some two seconds).
    """
    written: list[Path] = []
    roofline: Roofline | None = None
    for name, (network, given) in networks.items():
        if given is None:
            continue
        executable = network.executable_for((given,), {}) if isinstance(network, PerShape) else network
        roofline = roofline or _roofline(executable)
        page = model_page(executable.profile(given, calls=CALLS), title=name, roofline=roofline or "assumed")
        path = folder / f"{name}.html"
        path.write_text(page, encoding="utf-8")
        written.append(path)
    return written


def _roofline(executable: Executable) -> Roofline | None:
    """What the machine can do with the threads of an executable; None where that cannot be measured."""
    try:
        return probe(threads=executable.context.pool.threads)
    except RunError:
        return None
