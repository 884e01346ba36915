"""The files that tell of a model's calls: a page to read, and a trace for Perfetto."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilework.cli.progress import working
from tilework.cli.writing import check_folder, save_bytes
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from tilework.report.page.facts import EngineTimes, Subject
    from tilework.runtime.profile import Profile


@dataclass(frozen=True)
class Wanted:
    """Where a report and a trace are to go; None for one that nobody asked for."""

    report: Path | None = None
    trace: Path | None = None

    @property
    def any(self) -> bool:
        """Whether one of them is wanted."""
        return self.report is not None or self.trace is not None

    def as_json(self) -> dict[str, str]:
        """The files by what they are."""
        found = {"report": self.report, "trace": self.trace}
        return {name: str(path) for name, path in found.items() if path is not None}

    def tell(self) -> None:
        """Say where the files are."""
        for name, path in self.as_json().items():
            click.echo(f"{name}: {path}")


def wanted(report: Path | None, trace: Path | None) -> Wanted:
    """Look at the paths before anything is computed for them. Raises `FileFormatError` 1901 where no file can be made,
    `UsageError` 1002 for one path given twice.
    """
    for path in (report, trace):
        if path is not None:
            check_folder(path)
    if report is not None and report == trace:
        raise UsageError(1002, f"--report and --trace are both {report}", where="--trace", hint="give two files")
    return Wanted(report, trace)


def write(
    files: Wanted, subject: Profile | Subject, model: Path, *, region: int | None = None,
    engines: Sequence[EngineTimes] = (),
) -> None:  # fmt: skip
    """Write what is wanted, each whole or not at all. Raises `FileFormatError` 1901."""
    from tilework.runtime.profile import Profile

    if files.trace is not None and isinstance(subject, Profile):
        from tilework.report.trace_events import trace_text

        save_bytes(files.trace, trace_text(subject, model.name).encode())
    if files.report is not None:
        with working("measuring what this machine can do"):
            from tilework.report.page.build import model_page

            page = model_page(subject, title=model.name, region=region, engines=engines)
        save_bytes(files.report, page.encode())
