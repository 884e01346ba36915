"""Tilework: an AI compiler backend. Compute says what, schedule says how.

The public names are imported on first use, so that `import tilework` costs next to nothing.
"""

from __future__ import annotations

from tilework.version import __version__

TYPE_CHECKING = False  # type checkers take it as true; importing it from typing would be most of this import's time

if TYPE_CHECKING:
    from tilework import compute
    from tilework.compiler.build import build
    from tilework.errors import TileworkError
    from tilework.frontends.compile import compile  # noqa: A004
    from tilework.report.build import report
    from tilework.runtime.context import Context, ContextOptions
    from tilework.runtime.executable import Executable
    from tilework.runtime.package import load
    from tilework.runtime.pending import PendingCall
    from tilework.runtime.profile import Profile
    from tilework.schedule.schedule import Schedule
    from tilework.tuning.measure.measurer import measure

__all__ = [
    "Context",
    "ContextOptions",
    "Executable",
    "PendingCall",
    "Profile",
    "Schedule",
    "TileworkError",
    "__version__",
    "build",
    "compile",
    "compute",
    "load",
    "measure",
    "report",
]

_HOMES = {
    "Context": "tilework.runtime.context",
    "ContextOptions": "tilework.runtime.context",
    "Executable": "tilework.runtime.executable",
    "PendingCall": "tilework.runtime.pending",
    "Profile": "tilework.runtime.profile",
    "Schedule": "tilework.schedule.schedule",
    "TileworkError": "tilework.errors",
    "build": "tilework.compiler.build",
    "compile": "tilework.frontends.compile",
    "compute": "tilework.compute",
    "load": "tilework.runtime.package",
    "measure": "tilework.tuning.measure.measurer",
    "report": "tilework.report.build",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tilework' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    from importlib import import_module

    from tilework.garbage import no_collections

    with no_collections():
        module = import_module(home)
    value = module if home == f"tilework.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
