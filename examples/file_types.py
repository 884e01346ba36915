"""Tell the type of every file of this repository: `make demo`.

The network is the one inside the package `magika`, compiled and run by Tilework, with ONNX Runtime beside it.
Exit code: 0 both name the same type for every file; 1 they do not; 2 something that is needed cannot be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.onnx_engines import session
from benchmarks.harness.result import MissingPeerError
from examples.anatomy import anatomy, fitted, wrapped
from examples.detector import Array, Detector, Recorder, TileworkRunner, Verdict, model_file, package_folder
from tilework.compiler.compile import compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.frontends.compile import load_graph
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.tuning.measure.statistics import median, median_interval

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
TIMED_FILES = 100
"""Files, spread evenly over all, that the two engines are timed on."""
SETTLE_SECONDS = 0.06
"""A pause between the engines: idle workers of the one must not run beside the other."""


def repository_files(root: Path) -> list[str]:
    """Return the files of a repository in order: what git knows, else what is there, less what is hidden or built."""
    git = shutil.which("git")
    names: list[str] = []
    if git is not None:
        listed = subprocess.run([git, "ls-files", "-z"], cwd=root, capture_output=True, check=False)
        if listed.returncode == 0:
            names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    if not names:
        names = [str(path.relative_to(root)) for path in _walk(root)]
    return sorted(name for name in names if (root / name).is_file())


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def table(files: Sequence[str], verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the table of file, type and score; a file that needs no network has no score."""
    width = min(64, max(map(len, files), default=0))
    yield f"{'file':{width}}  {'type':12}  score  what it is"
    yield f"{'-' * width}  {'-' * 12}  -----  {'-' * 24}"
    for name, verdict in zip(files, verdicts, strict=True):
        shown = name if len(name) <= width else f"…{name[1 - width :]}"
        score = f"{verdict.score:.3f}" if verdict.by_network else "    -"
        yield fitted(f"{shown:{width}}  {verdict.label:12}  {score}  {verdict.description}")


def differences(files: Sequence[str], ours: Sequence[Verdict], theirs: Sequence[Verdict]) -> list[str]:
    """Return a line for each file that the two engines do not call the same."""
    return [
        f"{name}: {mine.label} ({mine.score:.3f}) by Tilework, {other.label} ({other.score:.3f}) by ONNX Runtime"
        for name, mine, other in zip(files, ours, theirs, strict=True)
        if mine.label != other.label
    ]


def _timed(call: Callable[[Any], object], feeds: Sequence[Any]) -> list[float]:
    time.sleep(SETTLE_SECONDS)
    call(feeds[0])
    found: list[float] = []
    for feed in feeds:
        start = time.perf_counter()
        call(feed)
        found.append(time.perf_counter() - start)
    return found


def times(executable: Executable, reference: Any, feeds: Sequence[Mapping[str, Array]]) -> Iterator[str]:
    """Yield the time per file of both engines on the same inputs, taken in turns."""
    given = [tuple(feed[port.name] for port in executable.inputs) for feed in feeds]
    engines: dict[str, Callable[[], list[float]]] = {
        "Tilework": lambda: _timed(lambda arrays: executable(*arrays), given),
        "ONNX Runtime": lambda: _timed(lambda feed: reference.run(None, feed), feeds),
    }
    taken: dict[str, list[list[float]]] = {name: [] for name in engines}
    for turn in range(ROUNDS):
        for name in list(engines)[:: -1 if turn % 2 else 1]:
            taken[name].append(engines[name]())
    a_file = {name: [median(samples) for samples in zip(*rounds, strict=True)] for name, rounds in taken.items()}
    ratio = median_interval([ours / theirs for ours, theirs in zip(*a_file.values(), strict=True)])
    for name, samples in a_file.items():
        yield f"  {name:12}  {median(samples) * 1e3:7.3f} ms a file"
    yield f"  ratio {ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], median over {len(feeds)} files"


def main() -> int:
    """Run the demonstration and return the exit code."""
    try:
        package = package_folder()
        path = model_file(package)
        with Context() as context:
            threads = context.pool.threads
            reference = session(str(path), threads)
            graph = load_graph(path)
            executable = compile_graph(graph, CompileOptions(), context)
            return show(package, executable, reference, threads, lambda: lower_graph(graph, CompileOptions()))
    except MissingPeerError as missing:
        print(missing, file=sys.stderr)
        return 2


def show(package: Path, executable: Executable, reference: Any, threads: int, lowered: Callable[[], Any]) -> int:
    """Print everything; 1 where the two engines disagree about a file."""
    files = repository_files(ROOT)
    recorder = Recorder(TileworkRunner(executable))
    detectors = Detector(package, recorder), Detector(package, reference)
    ours, theirs = ([detector.identify(ROOT / name) for name in files] for detector in detectors)
    print("\n".join(table(files, ours)))
    kinds = Counter(verdict.label for verdict in ours)
    print(f"\n{len(files)} FILES:")
    print("\n".join(wrapped(", ".join(f"{count} {label}" for label, count in kinds.most_common()))))
    found = differences(files, ours, theirs)
    print("\n".join(found) if found else "Tilework and ONNX Runtime name the same type for every file.")
    print(f"\nTIME of the network for a file, {threads} threads each:")
    print("\n".join(times(executable, reference, recorder.feeds[:: -(-len(recorder.feeds) // TIMED_FILES)])))
    print("\n".join(anatomy(lowered(), executable.explain(), batch=1)), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
