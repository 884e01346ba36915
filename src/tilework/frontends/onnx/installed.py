"""Which onnx is installed, told without importing it: that takes longer than finding a compiled model."""

from __future__ import annotations

import sys
from pathlib import Path

_BEGINNING, _END = "onnx-", ".dist-info"


def onnx_version() -> str:
    """The version; empty where there is none. Imports the package where the folder it is in does not tell."""
    if "onnx" not in sys.modules:
        folder = next((path for path in map(Path, sys.path) if (path / "onnx" / "__init__.py").is_file()), None)
        # not importlib.metadata: importing that alone takes longer than all that is done here
        beside = [] if folder is None else [path.name for path in folder.iterdir()]
        names = [name for name in beside if name.startswith(_BEGINNING) and name.endswith(_END)]
        if len(names) == 1:
            return names[0][len(_BEGINNING) : -len(_END)]
    try:
        from onnx import __version__
    except ImportError:
        return ""
    return __version__
