"""Versions of what is installed. Nothing is imported for it: the list of an installation says them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from tilework.cli.doctor.section import Advice, Section
from tilework.version import __version__

NEEDED = ("numpy", "llvmlite", "islpy", "ml_dtypes", "click", "rich")
OPTIONAL = ("onnx",)
PEERS = ("onnxruntime", "openvino", "torch")


def versions() -> Section:
    """The versions of Tilework, Python, what Tilework needs, and the engines that it is compared with."""
    found = {name: _version(name) for name in (*NEEDED, *OPTIONAL, *PEERS)}
    installed = _version("tilework")
    advice: list[Advice] = []
    for name in NEEDED:
        if found[name] is None:
            advice.append(Advice(f"{name} is not installed", "Install Tilework anew: pip install .", True, 1007))
    if found["onnx"] is None:
        advice.append(Advice("onnx is not installed: no model can be read", "pip install 'tilework[onnx]'", code=1007))
    if installed is not None and installed != __version__:
        text = f"version {installed} is installed, and this is {__version__}"
        advice.append(Advice(text, "See which one `python -c 'import tilework; print(tilework.__file__)'` names."))
    lines = [
        ("tilework", f"{__version__}, Python {platform.python_version()}, {platform.platform()}"),
        ("needs", _listed(NEEDED, found)),
        ("beside", _listed((*OPTIONAL, *PEERS), found)),
    ]
    facts = {"tilework": __version__, "python": platform.python_version(), "system": platform.platform(), **found}
    return Section("versions", facts, tuple(lines), tuple(advice))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _listed(names: Sequence[str], found: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {found[name] or '(none)'}" for name in names)
