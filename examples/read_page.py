"""Read the text on a picture of a page: `make demo`.

The page is drawn anew. The reader is that of the package `rapidocr_onnxruntime`, its networks compiled and run by
Tilework, with ONNX Runtime beside it. Pictures of the page and of what was read go to `out/demo`, and for each network
a page in HTML that tells where its time goes.
Exit code: 0 both engines read the same text and every character of it is right; 1 they do not, or one is not;
2 something that is needed cannot be had.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness.onnx_engines import session
from benchmarks.harness.result import MissingPeerError
from examples.network_reports import write_reports
from examples.reader import (
    NETWORKS,
    Line,
    Network,
    Reader,
    Stopwatch,
    model_file,
    onnxruntime_network,
    package_folder,
    tilework_network,
)
from tilework import compile as compile_model
from tilework.runtime.context import Context
from tilework.tuning.measure.statistics import median, ratio_interval

if TYPE_CHECKING:
    from PIL import Image

    from tilework.runtime.executable import Executable
    from tilework.runtime.per_shape import PerShape

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "demo"
ROUNDS = 7
SETTLE_SECONDS = 0.06
"""A pause between the engines: idle workers of the one must not run beside the other."""
WHOLE = "the page"


@dataclass(frozen=True)
class Ready:
    """A compiled network: how long that took, and whether it was found on disk, compiled by an earlier run."""

    executable: Executable | PerShape
    seconds: float
    kept: bool


def compiled(path: Path, context: Context) -> Ready:
    """Compile a network, or find it where earlier runs have left it."""
    counts = context.objects.store.counts if context.objects is not None else Counter[str]()
    before = counts["misses"]
    start = time.perf_counter()
    executable = compile_model(path, context=context)
    seconds = time.perf_counter() - start
    return Ready(executable, seconds, context.objects is not None and counts["misses"] == before)


# -- what was read -----------------------------------------------------------------------------------------------------
def table(drawn: Sequence[str], read: Sequence[Line]) -> Iterator[str]:
    """Yield what was read, line by line, with the score of each; what is not as it was drawn is told."""
    width = max((len(line.text) for line in read), default=0)
    yield f"{'WHAT TILEWORK READS':{width}}  score"
    for line in read:
        note = "" if line.text in drawn else f"  drawn: {_best(line.text, drawn)}"
        yield f"{line.text:{width}}  {line.score:.3f}{note}"


@dataclass(frozen=True)
class Accuracy:
    """How much of what was drawn was read: lines as they are, characters besides spaces, spaces."""

    lines: int
    all_lines: int
    characters: int
    all_characters: int
    spaces: int
    all_spaces: int

    def __str__(self) -> str:
        return (
            f"{self.lines} of {self.all_lines} lines exactly as drawn; {self.characters} of {self.all_characters} "
            f"characters and {self.spaces} of {self.all_spaces} spaces between words"
        )


def accuracy(drawn: Sequence[str], read: Sequence[str]) -> Accuracy:
    """Compare what was read with what was drawn, in whatever order it was found.

    The recognition network itself loses narrow spaces now and then, so these are counted apart.
    """
    pairs = [(line, _best(line, read)) for line in drawn]
    matches = [(line, found) for line, found in pairs if _letters(line) == _letters(found)]
    exact = sum(line == found for line, found in pairs)
    characters = sum(_common(_letters(line), _letters(found)) for line, found in pairs)
    spaces = sum(min(line.count(" "), found.count(" ")) for line, found in matches)
    return Accuracy(
        exact, len(drawn), characters, sum(map(len, map(_letters, drawn))),
        spaces, sum(line.count(" ") for line in drawn),
    )  # fmt: skip


def faults(drawn: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Return what is wrong: lines that the engines read differently, and lines read otherwise than they were drawn."""
    found: list[str] = []
    if len(ours) != len(theirs):
        found.append(f"Tilework reads {len(ours)} lines and ONNX Runtime {len(theirs)}")
    found += [
        f"line {n}: {mine!r} by Tilework, {other!r} by ONNX Runtime"
        for n, (mine, other) in enumerate(zip(ours, theirs, strict=False), 1)
        if mine != other
    ]
    read, wanted = Counter(map(_letters, ours)), Counter(map(_letters, drawn))
    found += [f"nowhere on the page, or not as often: {text!r}" for text in (read - wanted)]
    found += [f"on the page and not read: {text!r}" for text in (wanted - read)]
    return found


def _letters(text: str) -> str:
    return "".join(text.split())


def _best(line: str, read: Sequence[str]) -> str:
    return max(read, key=lambda text: (_common(_letters(line), _letters(text)), text == line), default="")


def _common(drawn: str, read: str) -> int:
    """Return how many characters of `drawn` are in `read`, in the same order."""
    row = [0] * (len(read) + 1)
    for character in drawn:
        before = 0
        for place, other in enumerate(read, 1):
            kept = row[place]
            row[place] = before + 1 if character == other else max(kept, row[place - 1])
            before = kept
    return row[-1]


# -- how long it takes -------------------------------------------------------------------------------------------------
Times = Mapping[str, list[float]]
"""Seconds of each network, and of the whole page, one a reading."""


def readings(page: Image.Image, reader: Reader, watches: Mapping[str, Stopwatch]) -> Iterator[dict[str, float]]:
    """Read the page again and again; yield the seconds of each network and of the whole."""
    while True:
        start = time.perf_counter()
        reader.read(page)
        whole = time.perf_counter() - start
        yield {**{name: watch.lap() for name, watch in watches.items()}, WHOLE: whole}


def times_table(ready: Mapping[str, Ready], first: Mapping[str, float], ours: Times, theirs: Times) -> Iterator[str]:
    """Yield the table of compile time, first and later readings by Tilework, and readings by ONNX Runtime."""
    yield f"{'':12}  {'ready in':>10}  {'1st reading':>11}  {'later':>9}  {'ONNX Runtime':>12}  ratio [95 %]"
    for name, mine in ours.items():
        here = ready.get(name)
        made = sum(one.seconds for one in ready.values()) if here is None else here.seconds
        ratio = ratio_interval(mine, theirs[name])
        yield (
            f"{name:12}  {made * 1e3:7.0f} ms  {first[name] * 1e3:8.1f} ms  {median(mine) * 1e3:6.1f} ms  "
            f"{median(theirs[name]) * 1e3:9.1f} ms  {ratio.middle:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
        )


def answer(ready: Iterable[Ready]) -> str:
    """Say whether the networks were compiled now or found."""
    kept = [one.kept for one in ready]
    if all(kept):
        return "found on disk, compiled by an earlier run (`tilework cache stats`; TILEWORK_CACHE=off compiles anew)"
    return "compiled now" if not any(kept) else f"{sum(kept)} of {len(kept)} found on disk, the others compiled now"


# -- all of it ---------------------------------------------------------------------------------------------------------
def main() -> int:
    """Run the demonstration and return the exit code."""
    try:
        # here: what is missing is told in a line
        from examples.page import draw_page
    except ImportError as missing:
        print(MissingPeerError(missing.name or str(missing), "run `make demo`"), file=sys.stderr)
        return 2
    page, drawn = draw_page()
    OUT.mkdir(parents=True, exist_ok=True)
    page.save(OUT / "page.png")
    try:
        package = package_folder()
        with Context() as context:
            threads = context.pool.threads
            files = {name: model_file(package, name) for name in NETWORKS}
            theirs = {name: Stopwatch(onnxruntime_network(session(str(path), threads))) for name, path in files.items()}
            print(f"Three networks are made ready: {', '.join(files)} ...", flush=True)
            ready = {name: compiled(path, context) for name, path in files.items()}
            return show(package, page, drawn, ready, theirs, threads)
    except MissingPeerError as missing:
        print(missing, file=sys.stderr)
        return 2


def show(
    package: Path, page: Image.Image, drawn: Sequence[str], ready: Mapping[str, Ready],
    their_watches: Mapping[str, Stopwatch], threads: int,
) -> int:  # fmt: skip
    """Read the page by both engines and print everything; 1 where something is wrong."""
    from examples.page import draw_reading

    own: dict[str, Network] = {name: tilework_network(one.executable) for name, one in ready.items()}
    watches = {name: Stopwatch(network) for name, network in own.items()}
    reader, other = Reader(package, watches), Reader(package, their_watches)
    start = time.perf_counter()
    read = reader.read(page)
    first = {name: watch.lap() for name, watch in watches.items()} | {WHOLE: time.perf_counter() - start}
    expected = [line.text for line in other.read(page)]
    for watch in their_watches.values():
        watch.lap()
    texts = [line.text for line in read]
    draw_reading(page, read).save(OUT / "read.png")
    print("\n".join(["", *table(drawn, read), ""]))
    wrong = faults(drawn, texts, expected)
    print("\n".join(wrong) if wrong else "ONNX Runtime reads the same text in the same pipeline.")
    print(f"{accuracy(drawn, texts)}.\n", flush=True)

    runs = {"ours": readings(page, reader, watches), "theirs": readings(page, other, their_watches)}
    taken: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    for turn in range(ROUNDS):
        for engine in list(runs)[:: -1 if turn % 2 else 1]:
            time.sleep(SETTLE_SECONDS)
            taken[engine].append(next(runs[engine]))
    mine, others = ({name: [one[name] for one in seconds] for name in first} for seconds in taken.values())
    print(f"TIME, {threads} threads each, medians of {ROUNDS} readings in turns; the page with its pictures and boxes:")
    print("\n".join(times_table(ready, first, mine, others)))
    print(f"Networks: {answer(ready.values())}.")
    print("Height and width are free: one compilation reads pages and lines of any size.")
    shown = OUT.relative_to(ROOT) if OUT.is_relative_to(ROOT) else OUT
    print(f"\nPICTURES: {shown}/page.png, {shown}/read.png (with a box around each line, and its text)")
    reports = write_reports(OUT, {name: (one.executable, watches[name].last) for name, one in ready.items()})
    print("REPORTS: where the time of each network goes, to open in a browser")
    print("\n".join(f"  {shown / report.name}" for report in reports))
    network = shlex.quote(str(model_file(package, "recognition")))
    print("NEXT: make demo-magika shows every stage of a small network; of one of these, what was decided and why:")
    print(f"  tilework explain {network}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
