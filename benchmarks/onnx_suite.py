"""ONNX's own backend tests on the processor: how many pass, and that none crashes or computes a wrong value."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from benchmarks.harness.models import ROOT
from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure

SUITE = ROOT / "suites" / "onnx_suite.py"
BACKEND = "tilework.frontends.onnx.backend"
NEEDED, OUT_OF = 1950, 2033
"""Cases that have to pass, of those there are."""
ESTIMATE = 0.25
"""Seconds that a case takes, about."""
CODED = re.compile(r"^\w+: \[TW\d{4}\]")
FAULT = re.compile(r"\[TW(\d{4})\] (?:[^\[]*?: )?([^\[]*)")
SHOWN = 60
"""Rows of reasons that are shown."""

OTHERWISE = {
    r"bernoulli|training_dropout": "random: the values expected are those of numpy's generator",
    r"attention_4d_causal_fp16": "expected values are rounded to float16 at each step; ours are nearer to float64's",
    r"dft_inverse": "expected values have 2e-7 of rounding where the exact ones, and ours, are 0",
    r"loop16_seq_none": "the values are equal; ONNX's runner takes the length of an array without dimensions",
}
"""Why values may differ, by what the case's name matches: none is wrong by ONNX's specification."""

Outcomes = dict[str, dict[str, Any]]


def names() -> list[str]:
    """Every case on the processor, as kind/name."""
    command = [sys.executable, str(SUITE), BACKEND, "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    return [line for line in done.stdout.splitlines() if "/" in line and not line.startswith("{")]


def outcomes(chosen: list[str] | None) -> Outcomes:
    """What each case came to, by its name; None runs all."""
    with tempfile.TemporaryDirectory() as place:
        told = Path(place) / "told.json"
        command = [sys.executable, str(SUITE), BACKEND, "--json", str(told), "--show", "0"]
        if chosen is not None:
            command += ["-k", f"^({'|'.join(map(re.escape, chosen))})$"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
        if not told.is_file():
            raise RuntimeError(done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:])
        found: Outcomes = json.loads(told.read_text())
    return found


def _environment() -> dict[str, str]:
    """Models of the suite that are real ones are kept beside the other models' cache."""
    from benchmarks.harness import models

    return {**os.environ, "ONNX_HOME": str(models.folder() / "onnx_home")}


def reason(message: str) -> str:
    """What a refusal says, without the names of one case: the same reason is told once."""
    faults = FAULT.findall(message)
    code, text = faults[-1] if faults else ("", message)
    text = re.sub(r"\(\d+ nodes?:.*", "", text)
    text = re.sub(r"'[^']*'", "...", text).strip(" -")
    return f"{f'TW{code} ' if code else ''}{text}"[:110]


def excuse(name: str) -> str | None:
    """Why a case's values may differ from those that it expects."""
    return next((text for pattern, text in OTHERWISE.items() if re.search(pattern, name)), None)


def run(options: Options) -> Result:
    """All cases, or a share of them, each in a process that a crash does not take others with."""
    share = options.share(names(), lambda _: ESTIMATE)
    found = outcomes(list(share) if options.quick else None)
    counts = Counter(case["status"] for case in found.values())
    errors = {name: case for name, case in found.items() if case["status"].endswith("error")}
    uncoded = [name for name, case in errors.items() if not CODED.match(case["msg"])]
    wrong = [name for name, case in found.items() if case["status"] == "mismatch" and excuse(name) is None]
    needed = NEEDED * len(found) / OUT_OF
    why: defaultdict[str, list[str]] = defaultdict(list)
    for name, case in found.items():
        if case["status"] != "pass":
            excused = excuse(name) if case["status"] == "mismatch" else None
            why[f"{case['status']}: {excused or reason(case['msg'])}"].append(name)
    listed = sorted(why.items(), key=lambda entry: -len(entry[1]))
    rows = [[text, str(len(cases)), ", ".join(cases[:3])] for text, cases in listed[:SHOWN]]
    return Result(
        figures=[
            Figure(f"of {len(found)} cases pass", counts["pass"], "", Bar(">=", needed), condition=False),
            check_figure("none crashes or hangs", counts["crash"] + counts["timeout"] == 0),
            check_figure(f"{len(wrong)} wrong", not wrong),
            check_figure("every refusal has a code", not uncoded),
        ],
        columns=["what does not pass", "cases", "for example"],
        rows=rows,
        notes=[f"cases: {share}", *(f"without a code: {name}: {errors[name]['msg'][:160]}" for name in uncoded[:20])],
        samples={"outcomes": found},
    )
