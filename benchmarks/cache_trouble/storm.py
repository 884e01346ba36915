"""Many processes that compile in one folder and are killed at random times."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from benchmarks.cache_trouble.compiling import MAKERS, Journal, forked, results_in_a_child
from benchmarks.key_pairs.building import Drawn
from benchmarks.key_pairs.pairs import environment
from tilework.cache.entry import DamagedError
from tilework.cache.store import Store
from tilework.fast_dataclass import dataclass, field

ROUND_SECONDS = 120.0
"""After which a round is taken to hang."""


@dataclass
class Storm:
    """What came of it, added up over rounds."""

    processes: int = 0
    killed: int = 0
    right: int = 0
    wrong: int = 0
    coded: list[str] = field(default_factory=list[str])
    uncoded: list[str] = field(default_factory=list[str])
    compiles: int = 0
    keys: int = 0
    damaged: int = 0
    hung: int = 0
    silent: int = 0
    """Processes that lived and told nothing."""


def models(folder: Path, seed: int) -> dict[str, tuple[Path, str]]:
    """The models' files, and digests of what they compute."""
    found: dict[str, tuple[Path, str]] = {}
    for name, make in MAKERS.items():
        path = folder / f"{name}.onnx"
        path.write_bytes(make(Drawn(seed, name)).SerializeToString())
        found[name] = path, results_in_a_child(path)
    return found


def one_round(
    storm: Storm, known: dict[str, tuple[Path, str]], folder: Path, processes: int, kills: int, chance: random.Random
) -> None:
    """Start so many processes in an empty cache, kill some of them, start others for those; then one more of each."""
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    journal = Journal(folder / "journal")
    names, before = list(known), storm.processes
    with environment(TILEWORK_CACHE="on", TILEWORK_CACHE_DIR=str(cache)):
        living = {_started(chance.choice(names), known, journal) for _ in range(processes)}
        storm.processes += processes
        killed: set[int] = set()
        left, until = kills, time.monotonic() + ROUND_SECONDS
        while living:
            time.sleep(chance.expovariate(1 / 0.02))
            ended = _ended(living)
            killed |= {child for child, status in ended.items() if os.WIFSIGNALED(status)}
            if time.monotonic() > until:
                storm.hung += len(living)
                left = 0
                for child in living:
                    os.kill(child, signal.SIGKILL)
                continue
            if left > 0 and living:
                os.kill(chance.choice(sorted(living)), signal.SIGKILL)
                left -= 1
                living.add(_started(chance.choice(names), known, journal))
                storm.processes += 1
        for name in names:  # what the storm left behind serves everybody
            os.waitpid(_started(name, known, journal), 0)
            storm.processes += 1
    storm.killed += len(killed)
    told = {line.process for line in journal.lines() if line.what not in ("made", "model")}
    storm.silent += storm.processes - before - len(killed | told)
    _added(storm, journal, cache)


def _started(name: str, known: dict[str, tuple[Path, str]], journal: Journal) -> int:
    return forked(name, *known[name], journal)


def _ended(living: set[int]) -> dict[int, int]:
    """Children that are over, taken out of the living, with their status."""
    found: dict[int, int] = {}
    for child in list(living):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            found[child] = status
            living.discard(child)
    return found


def _added(storm: Storm, journal: Journal, cache: Path) -> None:
    lines = journal.lines()
    made = [line.key for line in lines if line.what in ("made", "model")]
    storm.compiles += len(made)
    storm.keys += len(set(made))
    storm.right += sum(line.what == "right" for line in lines)
    storm.wrong += sum(line.what == "wrong" for line in lines)
    storm.coded += [line.key for line in lines if line.what == "coded"]
    storm.uncoded += [line.key for line in lines if line.what == "uncoded"]
    store = Store(cache, 1 << 30)
    storm.damaged += store.set_aside
    for kept in store.entries():
        try:
            store.read(kept.path)
        except DamagedError:
            storm.damaged += 1


def blown(folder: Path, seed: int, processes: int, kills: int, a_round: int) -> Storm:
    """Rounds until so many processes were killed."""
    chance = random.Random(seed)
    known = models(folder, seed)
    storm = Storm()
    while storm.killed < kills and not storm.hung:
        one_round(storm, known, folder, processes, min(a_round, kills - storm.killed), chance)
    return storm


def as_told(storm: Storm) -> dict[str, Any]:
    """For JSON."""
    return {name: getattr(storm, name) for name in Storm.__dataclass_fields__}
