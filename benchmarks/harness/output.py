"""How results are shown: a table, notes, one closing line, and the whole record as JSON."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import machine, versions
from benchmarks.harness.result import Options, Result


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain table: the first column to the left, the others to the right."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(aligned).rstrip()

    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, rows)])


def closing_line(name: str, result: Result) -> str:
    """Return the last line a benchmark prints: its name, its figures, their bars."""
    return f"{name} {'; '.join(map(str, result.figures))}"


def show(name: str, result: Result) -> None:
    """Print the table, the notes and the closing line."""
    if result.rows:
        print(table(result.columns, result.rows))
    for note in result.notes:
        print(note)
    print(closing_line(name, result), flush=True)


def record(name: str, options: Options, result: Result) -> dict[str, Any]:
    """Return everything that was measured and with what, ready for JSON."""
    return {
        "benchmark": name,
        "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "options": asdict(options),
        "machine": machine(),
        "versions": versions(),
        "facts": result.facts,
        "figures": [
            {**asdict(figure), "judged": figure.judged, "holds": figure.holds, "text": str(figure)}
            for figure in result.figures
        ],
        "columns": result.columns,
        "rows": result.rows,
        "notes": result.notes,
        "samples": result.samples,
    }


def write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write one record, or a list of several."""
    body = records[0] if len(records) == 1 else list(records)
    path.write_text(json.dumps(body, indent=1, default=str) + "\n")
