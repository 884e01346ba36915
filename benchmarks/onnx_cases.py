"""The regression cases of `suites/cases` that are ONNX models: small, each from a public report of a bug."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness.models import ROOT
from benchmarks.harness.result import Options, Result, check_figure

PROGRAM = ROOT / "suites" / "cases" / "run_all.py"
BACKEND = "tilework.frontends.onnx.backend:run_model"
OUTCOMES = ("PASS", "FAIL", "UNSUPPORTED")


def run(options: Options) -> Result:
    """All cases, each in a process of its own; the quick form is the same."""
    del options
    command = [sys.executable, str(PROGRAM), "--onnx", BACKEND, "--torch", "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.split(" ", 1)[0] in OUTCOMES]
    if not lines:
        raise RuntimeError(done.stderr.strip()[-2000:] or "no case was run")
    rows: list[list[str]] = []
    for line in lines:
        outcome, name, *why = line.partition("   [")[0].split(" ", 2)
        rows.append([name, outcome.lower(), why[0][:140] if why else ""])
    passed = sum(row[1] == "pass" for row in rows)
    return Result(
        figures=[check_figure(f"{passed} of {len(rows)} pass", passed == len(rows))],
        columns=["case", "outcome", "why"],
        rows=rows,
    )
