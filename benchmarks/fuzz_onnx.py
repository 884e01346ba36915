"""Mutated ONNX files: none ends the process, hangs, or raises an error without a code. `make fuzz` takes 100,000."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.harness import forked
from benchmarks.harness.models import ROOT
from benchmarks.harness.result import QUICK_SECONDS, Options, Result, check_figure

MUTANTS = 20_000
VARIABLE = "FUZZ_MUTANTS"
"""Environment variable with another number of mutants."""
BATCH = 250
"""Mutants that one parent takes before it makes room for a fresh one."""
BAD = ("abort", "hang", "uncoded")
SHOWN = 40


def run(options: Options) -> Result:
    """All mutants, or as many as fit the quick form; a parent a processor at once."""
    wanted = int(os.environ.get(VARIABLE) or MUTANTS)
    limit = QUICK_SECONDS - 40 if options.quick else float("inf")
    workers = options.threads or os.cpu_count() or 1
    told: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tilework-fuzz-") as place:
        corpus = Path(place) / "corpus"
        models = forked.corpus(corpus)
        start = time.monotonic()
        batches = iter(range(0, wanted, BATCH))
        running: list[subprocess.Popen[str]] = []
        while True:
            while len(running) < workers and time.monotonic() - start < limit:
                first = next(batches, None)
                if first is None:
                    break
                running.append(_batch(corpus, options.seed, first, min(BATCH, wanted - first)))
            if not running:
                break
            done = running.pop(0)
            output, problems = done.communicate()
            if done.returncode:
                raise RuntimeError(problems.strip()[-2000:])
            told += [json.loads(line) for line in output.splitlines()]
    outcomes = Counter(answer["outcome"] for answer in told)
    bad = [answer for answer in told if answer["outcome"] in BAD]
    rows = [[str(answer["number"]), answer["outcome"], answer["why"][:140]] for answer in bad[:SHOWN]]
    taken = f"{len(told)} of {wanted} mutants of {models} models, seed {options.seed}"
    came = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return Result(
        figures=[
            check_figure(f"{outcomes['abort']} aborts", not outcomes["abort"]),
            check_figure(f"{outcomes['hang']} hangs", not outcomes["hang"]),
            check_figure(f"{outcomes['uncoded']} errors without a code in {len(told)}", not outcomes["uncoded"]),
        ],
        columns=["mutant", "outcome", "why"],
        rows=rows,
        notes=[taken, came],
        samples={"bad": bad, "outcomes": dict(outcomes)},
    )


def _batch(corpus: Path, seed: int, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.harness.forked", str(corpus), str(seed), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
