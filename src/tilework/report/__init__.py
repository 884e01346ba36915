"""What is drawn for people. The package itself can be called: `tilework.report(schedule)` is `report.build.report`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilework.report.build import Report


class _Door(ModuleType):
    """This package: importing any part of it puts it where the function's name is, so it answers like the function."""

    def __call__(self, *arguments: Any, **named: Any) -> Report:
        from tilework.report.build import report

        return report(*arguments, **named)


sys.modules[__name__].__class__ = _Door
