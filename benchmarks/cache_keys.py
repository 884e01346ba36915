"""Which compilations share code in the cache: 30 pairs that must, 30 that must not, each really compiled.

Two small models are compiled one after the other in an empty cache. The pair shares its code where the second makes no
object of a kernel and takes those of the first; it is apart where the objects of all its kernels are its own. Pairs
that differ in what is beside the kernels (weights, paths, sources) are judged by the whole model that is kept. Anything
between the two, and a first side that made no code, counts as wrong; so does a pair that shares code and then computes
something else. Sizes and weights are drawn from the seed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from benchmarks.harness.result import Options, Result, check_figure
from benchmarks.key_pairs import apart, shared
from benchmarks.key_pairs.building import Drawn
from benchmarks.key_pairs.pairs import Bench, Pair, environment
from tilework.errors import TileworkError
from tilework.runtime.context import Context

SECONDS = 1.5
"""What a pair takes, about."""


@contextlib.contextmanager
def cache_with_the_runtime(scratch: Path) -> Generator[Path]:
    """A folder with the code that every process needs (pool and gate), which no pair has to make again."""
    place = scratch / "runtime"
    with environment(TILEWORK_CACHE="on", TILEWORK_CACHE_DIR=str(place), TILEWORK_CACHE_LIMIT="1G"):
        context = Context()
        _ = context.pool, context.native
        context.close()
        yield place


def judged(pair: Pair, seed: int, runtime: Path, scratch: Path) -> str:
    """What is wrong with a pair; empty where it is as it must be."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        cache, own = Path(folder) / "cache", Path(folder) / "own"
        shutil.copytree(runtime, cache)
        own.mkdir()
        bench = Bench(Drawn(seed, pair.name), own)
        with environment(TILEWORK_CACHE_DIR=str(cache)):
            try:
                return pair.verdict(pair.first(bench), pair.second(bench))
            except (TileworkError, RuntimeError) as problem:
                return f"failed: {str(problem).splitlines()[0]}"


def run(options: Options, pairs: Sequence[Pair] = (*shared.PAIRS, *apart.PAIRS)) -> Result:
    """Every pair once."""
    share = options.share(pairs, lambda _: SECONDS)
    rows: list[list[str]] = []
    right = 0
    with tempfile.TemporaryDirectory() as folder, cache_with_the_runtime(Path(folder)) as runtime:
        for pair in share:
            problem = judged(pair, options.seed, runtime, Path(folder))
            right += not problem
            rows.append([pair.name, pair.level, pair.wanted, problem])
    return Result(
        figures=[check_figure(f"{right} of {len(share)} pairs as they must be", right == len(share))],
        columns=["pair", "what", "must be", "is"],
        rows=rows,
        notes=[f"pairs: {share}"],
    )
