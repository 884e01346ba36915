"""`python -m benchmarks NAME`: run one benchmark, or several; without a name, list them.

Exit code: 0 every bar holds, 1 one was missed or something failed, 2 a peer or a tool is missing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.output import record, show, write
from benchmarks.harness.result import MissingPeerError, Options, Result

HERE = Path(__file__).resolve().parent

HOLDS, MISSED, MISSING = 0, 1, 2


def names() -> list[str]:
    """Return the names of the benchmarks: their file names, with hyphens."""
    return sorted(path.stem.replace("_", "-") for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def summary(name: str) -> str:
    """Return the first line of a benchmark's docstring, without importing it."""
    tree = ast.parse((HERE / f"{name.replace('-', '_')}.py").read_text())
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def run(name: str, options: Options) -> Result:
    """Import a benchmark by its name and run it."""
    return importlib.import_module(f"benchmarks.{name.replace('-', '_')}").run(options)


def measured(name: str, options: Options, records: list[dict[str, Any]], ignore_times: bool) -> int:
    """Run one benchmark, print what it found, keep its record, and return its exit code."""
    start = time.perf_counter()
    # compile times are those of an empty cache, unless a benchmark says otherwise
    os.environ["TILEWORK_CACHE"] = "off"
    try:
        result = run(name, options)
    except MissingPeerError as missing:
        print(f"{name} not measured: {missing}", flush=True)
        return MISSING
    except Exception:  # noqa: BLE001 - the other benchmarks still run
        traceback.print_exc()
        print(f"{name} failed", flush=True)
        return MISSED
    result.notes.append(f"{time.perf_counter() - start:.0f} s")
    show(name, result)
    records.append(record(name, options, result))
    return HOLDS if (result.conditions_hold if ignore_times else result.holds) else MISSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", metavar="NAME", help="a benchmark; none: list them")
    parser.add_argument("--all", action="store_true", help="every benchmark, one after the other")
    parser.add_argument("--quick", action="store_true", help="as many rows, drawn by the seed, as fit three minutes")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="what the quick form draws, and random inputs")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of every engine")
    parser.add_argument("--ignore-times", action="store_true", help="let only conditions, e.g. equal values, fail")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every raw sample there")
    chosen = parser.parse_args(arguments)
    there = names()
    wanted = there if chosen.all else chosen.name
    for name in wanted:
        if name not in there:
            parser.error(f"there is no benchmark {name!r}; there are: {', '.join(there)}")
    if not wanted:
        width = max(map(len, there))
        print("\n".join(f"{name:{width}}  {summary(name)}" for name in there))
        return HOLDS
    options = Options(chosen.quick, chosen.seed, chosen.threads)
    records: list[dict[str, Any]] = []
    codes = [measured(name, options, records, chosen.ignore_times) for name in wanted]
    if chosen.json is not None and records:
        write(chosen.json, records)
    return MISSED if MISSED in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())
