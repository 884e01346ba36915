"""`tilework explain`: what was decided for each region of a model, why, and how long it should take or takes."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilework.cli import options, reports
from tilework.cli.parsing import input_paths, shapes, sizes_of
from tilework.cli.progress import working
from tilework.cli.subject import arguments, import_for, is_package, opened, refuse_compiling_options, takes_of
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilework.cli.regions import Sized
    from tilework.numerics import Level
    from tilework.plan.explanation import Explanation
    from tilework.plan.plan import Plan
    from tilework.report.page.facts import Subject
    from tilework.runtime.profile import Profile


@dataclass(frozen=True)
class Told:
    """What is explained: at which sizes, the loops of each region where they are known, times by region that ran."""

    explanation: Explanation
    sizes: Mapping[str, int]
    threads: int
    loops: Sequence[str] | None = None
    plans: Sequence[Plan] = ()
    profile: Profile | None = None
    random: Sequence[str] = ()

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """What each region took, by name."""
        steps = self.profile.steps if self.profile is not None else ()
        return {step.name: step.seconds for step in steps if step.kind in ("kernel", "library")}


@click.command("explain")
@options.model
@click.option("--region", type=int, default=None, metavar="N", help="One region in full: its schedule and loops.")
@click.option("--time", "timed", is_flag=True, help="Run the model step by step, and say how long each region took.")
@options.inputs
@options.shape
@options.threads
@options.machine
@options.numerics
@options.reports
@options.as_json
def command(
    model: Path, region: int | None, timed: bool, inputs: tuple[str, ...], seed: int, fixed: tuple[str, ...],
    threads: int | None, machine: str | None, numerics: Level, report: Path | None, trace: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the regions of MODEL: operators, algorithm, trace, work, what bounds it, and compile time by stage."""
    options.check_seed(seed)
    paths, given = input_paths(inputs), shapes(fixed)
    if not timed:
        options.refuse("inputs", "seed", "threads", "trace", why="nothing is run without --time")
    files = reports.wanted(report, trace)
    if is_package(model):
        refuse_compiling_options(model)
    with working(f"{'loading' if is_package(model) else 'compiling'} {model}"):
        told = None if timed or is_package(model) else _lowered(model, given, numerics, machine)
        if told is None:
            told = _opened(model, given, numerics, machine, threads, paths, seed, timed)
    count = len(told.explanation.regions)
    if region is not None and not 0 <= region < count:
        many = f"there are {count} regions, numbered from 0" if count > 1 else "there is one region, number 0"
        there = many if count else "there is no region"
        raise UsageError(1002, f"--region {region}: {there}", where="--region")
    chosen = range(count) if region is None else (region,)
    sized = _sized(told, chosen)
    if files.any:
        reports.write(files, _subject(told), model, region=region)
    if as_json:
        click.echo(json.dumps({**_facts(told, sized, in_full=region is not None), **files.as_json()}))
    else:
        _print(told, sized, in_full=region is not None)
        files.tell()


def _lowered(model: Path, given: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None) -> Told | None:
    """Nothing is loaded or run, so any machine will do; None for a model with black boxes."""
    from tilework.frontends.compile import load_graph, lower  # pulls in LLVM; `--help` should not wait for it
    from tilework.loops.text import program_text

    graph = load_graph(model, given)
    if any(node.black_box for node in graph.nodes):
        return None
    done = lower(graph, numerics=numerics, machine=machine)
    loops = [program_text(kernel.program) for kernel in done.kernels]
    return Told(done.explanation, sizes_of(done.plan, {}), 1, loops, (done.plan,))


def _opened(
    model: Path, given: Mapping[str, tuple[int, ...]], numerics: Level, machine: str | None, threads: int | None,
    paths: Sequence[tuple[str, ...]], seed: int, timed: bool,
) -> Told:  # fmt: skip
    """Of a package, of a model that is run, or of one with black boxes."""
    import_for(is_package(model))
    from tilework.runtime.context import Context, ContextOptions

    with Context(ContextOptions(threads=threads)) as context:
        executable = opened(model, given, numerics, machine, None, context)
        takes = takes_of(executable)
        if not timed:
            return Told(executable.explain(), sizes_of(takes, {}), 1, plans=executable.plans)
        arrays, random = arguments(takes, paths, seed)
        profile = executable.profile(*arrays.values())
        sizes = sizes_of(takes, arrays)
        return Told(profile.explanation, sizes, profile.threads, None, profile.plans, profile, random)


def _subject(told: Told) -> Profile | Subject:
    """What a report is about."""
    from tilework.report.page.facts import Subject

    return told.profile or Subject(told.explanation, tuple(told.plans), told.sizes, told.threads)


def _sized(told: Told, chosen: Sequence[int]) -> dict[int, Sized]:
    """The regions that were chosen, by number, at the sizes."""
    from tilework.cli.regions import sized
    from tilework.machine.finder import machine

    target, regions = machine(told.explanation.machine), told.explanation.regions
    return {n: sized(regions[n], told.sizes, target, told.threads, told.seconds.get(regions[n].name)) for n in chosen}


def _facts(told: Told, sized: Mapping[int, Sized], *, in_full: bool) -> dict[str, Any]:
    found = told.explanation
    rows = [
        {
            "region": n, "name": r.name, "operators": list(r.operators), "algorithm": r.algorithm, "choice": r.choice,
            "trace": r.trace, "flops": str(r.flops), "bytes": str(r.bytes), "kernels": list(r.kernels),
            **here.as_json(), **({"loops": told.loops[n] if told.loops is not None else None} if in_full else {}),
        }
        for n, r, here in ((n, found.regions[n], here) for n, here in sized.items())
    ]  # fmt: skip
    boxes = [
        {"operator": b.operator, "provider": b.provider, "reason": b.reason, "at": b.step} for b in found.black_boxes
    ]
    copies = [{"at": copy.step, "bytes": str(copy.bytes), "reason": copy.reason} for copy in found.copies]
    notices = [{"identifier": one.identifier, "message": one.message} for one in found.notices]
    return {
        "regions": rows, "machine": found.machine, "numerics": found.numerics, "sizes": dict(told.sizes),
        "threads": told.threads, "random_inputs": list(told.random), "black_boxes": boxes, "copies": copies,
        "notices": notices, "arena_bytes": str(found.arena_bytes), "constant_bytes": found.constant_bytes,
        "stages_ms": dict(found.compile_milliseconds),
    }  # fmt: skip


def _print(told: Told, sized: Mapping[int, Sized], *, in_full: bool) -> None:
    found = told.explanation
    click.echo(f"machine {found.machine}, numerics {found.numerics}")
    if told.sizes or told.seconds:
        sizes = ", ".join(f"{name} = {size}" for name, size in told.sizes.items())
        counted = f"{told.threads} {'thread' if told.threads == 1 else 'threads'}"
        click.echo(f"times are for {', '.join(part for part in (sizes, counted) if part)}")
    for number, here in sized.items():
        row = found.regions[number]
        click.echo(f"{number:3d} {row.name}: {', '.join(row.operators)}")
        click.echo(f"      {row.algorithm}, {row.choice}; {row.flops} flops, {row.bytes} bytes; {row.kernels[0]}")
        if str(here):
            click.echo(f"      {here}")
        if in_full:
            click.echo(f"      trace: {row.trace or '(the plain nest)'}")
            click.echo(told.loops[number] if told.loops is not None else "      (loops are shown of an ONNX file)")
    if not in_full:
        for box in found.black_boxes:
            click.echo(f"black box {box.operator} at {box.step} ({box.provider}): {box.reason}")
        for copy in found.copies:
            click.echo(f"copy of {copy.bytes} bytes at {copy.step}: {copy.reason}")
        for notice in found.notices:
            click.echo(f"{'warning' if notice.warning else 'note'} {notice.identifier}: {notice.message}")
    click.echo(f"arena {found.arena_bytes} bytes, constants {found.constant_bytes} bytes")
    click.echo("; ".join(f"{stage} {ms:.1f} ms" for stage, ms in found.compile_milliseconds))
