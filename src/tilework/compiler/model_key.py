"""The key of a whole compiled model: everything beside the model itself that decides what comes out.

Neither paths nor threads are part of it: code is the same for any number of threads.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from tilework.compiler.options import CompileOptions
from tilework.compiler.own_sources import own_sources
from tilework.machine.cpu import CpuMachine
from tilework.runtime.sections import LAYOUT
from tilework.version import __version__


def parts_beside_the_model(
    shapes: Mapping[str, Sequence[int]], options: CompileOptions, machine: CpuMachine, frontend: Mapping[str, str]
) -> dict[str, str]:
    """The parts by name; `machine` is what `options` name, `frontend` has the versions of what reads the
    model.

    Raises `OSError` where this package's own files cannot be read.
    """
    import llvmlite

    asked = {field.name: str(getattr(options, field.name)) for field in dataclasses.fields(options)}
    facts = {
        f"machine {field.name}": _text(getattr(machine, field.name))
        for field in dataclasses.fields(machine)
        if field.init
    }
    return {
        **asked,
        **facts,
        "shapes": _text(sorted((name, list(shape)) for name, shape in shapes.items())),
        "tilework": __version__,
        "sources": own_sources(),
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "python": ".".join(map(str, sys.version_info[:2])),
        **frontend,
        "layout": LAYOUT,
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)
