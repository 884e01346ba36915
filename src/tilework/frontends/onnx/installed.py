"""Which onnx is installed, told without importing it: that takes longer than finding a compiled model."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_BEGINNING, _END = "onnx-", ".dist-info"


def onnx_version() -> str:
    """The version; empty where there is none."""
    if "onnx" not in sys.modules:
        try:
            spec = importlib.util.find_spec("onnx")
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None:
            return ""
        # not importlib.metadata: importing that alone takes longer than all that is done here
        beside = (path.name for path in Path(spec.origin).parent.parent.iterdir())
        names = [name for name in beside if name.startswith(_BEGINNING) and name.endswith(_END)]
        if len(names) == 1:
            return names[0][len(_BEGINNING) : -len(_END)]
    from onnx import __version__

    return __version__
