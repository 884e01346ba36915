"""`tilework bench`: how long a model takes, beside other engines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilework.cli import options, reports
from tilework.cli.parsing import input_paths, shapes
from tilework.cli.peers import ONNX_OPTION, TORCH_OPTION, chosen, end_with, files_for_peers
from tilework.cli.progress import working
from tilework.cli.sizes import in_words
from tilework.cli.subject import arguments, declared, is_package, opened, refuse_compiling_options
from tilework.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilework.numerics import Level
    from tilework.peers.comparison import Comparison, Ran
    from tilework.report.page.facts import EngineTimes
    from tilework.runtime.profile import Profile
    from tilework.tuning.measure.statistics import Interval

USUAL_PEERS = "onnxruntime"
MOST_ROUNDS = 10_000
FEWEST_FOR_INTERVALS = 6


@click.command("bench")
@options.model
@click.option(
    "--against", default=None, metavar="ENGINE[,ENGINE]",
    help="Engines to compare with: onnxruntime, openvino, torch, or none (default: onnxruntime, if it is installed).",
)  # fmt: skip
@click.option("--rounds", type=int, default=None, metavar="N", help="Rounds of samples (default: 31 in a minute).")
@options.inputs
@options.shape
@options.threads
@options.machine
@options.numerics
@ONNX_OPTION
@TORCH_OPTION
@options.reports
@options.as_json
def command(
    model: Path, against: str | None, rounds: int | None, inputs: tuple[str, ...], seed: int, fixed: tuple[str, ...],
    threads: int | None, machine: str | None, numerics: Level, onnx: Path | None, torch: Path | None,
    report: Path | None, trace: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Time MODEL (an ONNX file or a .tilework package) beside other engines, each in a process of its own.

    Rounds alternate between the engines, and the ratios of what lies next to each other are judged. Outputs are
    compared as well. Dimensions that neither --shape nor --input gives are 1.
    """
    options.check_seed(seed)
    if rounds is not None and not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(1002, f"--rounds {rounds}: give 1 to {MOST_ROUNDS}", where="--rounds")
    paths, given_shapes = input_paths(inputs), shapes(fixed)
    files = reports.wanted(report, trace)
    peers = chosen(against if against is not None else USUAL_PEERS, "--against")
    if is_package(model):
        refuse_compiling_options(model)
        if against is None and onnx is None and torch is None:
            peers = ()
    theirs = files_for_peers(model, onnx, torch, peers)
    with working(f"reading {model}") as tell:
        from tilework.peers.comparison import compare_engines
        from tilework.peers.engine import Task
        from tilework.runtime.processors import thread_count

        count = thread_count(threads)
        arrays, random = arguments(declared(model, given_shapes, numerics, machine), paths, seed)
        task = Task(str(model), arrays, count, given_shapes, numerics, machine, is_package(model))
        found = compare_engines(task, peers, rounds=rounds, files=theirs, tell=tell)
    if files.any:
        profile = _profile(model, given_shapes, numerics, machine, count, arrays)
        reports.write(files, profile, model, engines=[_engine_times(found, ran) for ran in found.engines])
    if as_json:
        facts = _facts(found, task.inputs, random, count, str(model))
        click.echo(json.dumps({**facts, **files.as_json()}, allow_nan=False))
    else:
        _print(found, random, seed, count)
        files.tell()
    end_with(found.checked, random, asked=against is not None)


def _profile(
    model: Path, fixed: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None, threads: int,
    arrays: Mapping[str, Any],
) -> Profile:  # fmt: skip
    """Our own calls step by step, in this process: the one that was timed is gone."""
    from tilework.runtime.context import Context, ContextOptions

    with working(f"profiling {model}"), Context(ContextOptions(threads=threads)) as context:
        return opened(model, fixed, numerics, machine, None, context).profile(*arrays.values())


def _engine_times(found: Comparison, ran: Ran) -> EngineTimes:
    from tilework.report.page.facts import EngineTimes

    call, facts = ran.interval, ran.facts
    ratio = _interval(found.ratio(ran)) if ran is not found.ours else ""
    return EngineTimes(
        ran.name, facts.version, call.low, call.middle, call.high, ratio, facts.open_seconds, facts.first_seconds,
        ran.peak_bytes,
    )  # fmt: skip


def _print(found: Comparison, random: Sequence[str], seed: int, threads: int) -> None:
    if random:
        click.echo(f"random inputs (seed {seed}): {', '.join(random)}")
    rounds = len(found.ours.seconds)
    click.echo(f"{threads} {'thread' if threads == 1 else 'threads'}, {rounds} {'round' if rounds == 1 else 'rounds'}")
    click.echo(f"{'':12}{'a call, ms':>28}{'compile, ms':>14}{'first call, ms':>16}{'peak memory':>14}")
    for ran in found.engines:
        facts, peak = ran.facts, "?" if ran.peak_bytes is None else in_words(ran.peak_bytes)
        call = _interval(ran.interval.scaled(1e3))
        click.echo(
            f"{ran.name:12}{call:>28}{facts.open_seconds * 1e3:14.1f}{facts.first_seconds * 1e3:16.1f}{peak:>14}"
        )
    for ran in found.engines[1:]:
        if why := ran.facts.facts.get("why_eager"):
            click.echo(f"{ran.name} runs operator by operator, as it cannot compile: {why}")
    kept = found.ours.facts.facts.get("cache")
    if kept and kept["hits"]:
        total = kept["hits"] + kept["misses"]
        click.echo(
            f"compiled with {kept['hits']} of {total} entries from the cache (TILEWORK_CACHE=off leaves it aside)"
        )
    for ran in found.engines[1:]:
        click.echo(f"tilework takes {_interval(found.ratio(ran))} of {ran.name}'s time")
    for line in (line for checked in found.checked for line in checked.lines()):
        click.echo(line)
    if rounds < FEWEST_FOR_INTERVALS:
        click.echo(f"no intervals: 95 % takes {FEWEST_FOR_INTERVALS} rounds or more")


def _interval(found: Interval) -> str:
    middle = f"{found.middle:.4g}"
    return f"{middle} [{found.low:.4g}, {found.high:.4g}]" if math.isfinite(found.low) else middle


def _facts(
    found: Comparison, given: Mapping[str, Any], random: Sequence[str], threads: int, model: str
) -> dict[str, Any]:
    shapes = {name: {"dtype": str(array.dtype), "shape": list(array.shape)} for name, array in given.items()}
    return {
        "model": model, "threads": threads, "rounds": len(found.ours.seconds), "inputs": shapes,
        "random_inputs": list(random), "engines": [_engine(ran) for ran in found.engines],
        "ratios": {ran.name: _numbers(found.ratio(ran)) for ran in found.engines[1:]},
        "check": {checked.name: checked.as_json() for checked in found.checked},
    }  # fmt: skip


def _engine(ran: Ran) -> dict[str, Any]:
    facts = ran.facts
    return {
        "engine": ran.name, "version": facts.version, "call_ms": _numbers(ran.interval.scaled(1e3)),
        "compile_ms": facts.open_seconds * 1e3, "first_call_ms": facts.first_seconds * 1e3,
        "import_ms": facts.import_seconds * 1e3, "peak_bytes": ran.peak_bytes, "imported_bytes": facts.imported_bytes,
        "samples_ms": [one * 1e3 for one in ran.seconds], **facts.facts,
    }  # fmt: skip


def _numbers(found: Interval) -> dict[str, float | None]:
    ends = {"low": found.low, "high": found.high}
    return {"median": found.middle, **{name: end if math.isfinite(end) else None for name, end in ends.items()}}
