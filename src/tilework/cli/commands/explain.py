"""`tilework explain`: what was decided for each region of a model, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilework.cli import options
from tilework.cli.parsing import shapes
from tilework.cli.progress import working
from tilework.errors import UsageError

if TYPE_CHECKING:
    from tilework.numerics import Level


@click.command("explain")
@options.model
@click.option("--region", type=int, default=None, metavar="N", help="One region in full: its schedule and loops.")
@options.shape
@options.machine
@options.numerics
@options.as_json
def command(
    model: Path, region: int | None, fixed: tuple[str, ...], machine: str | None, numerics: Level, as_json: bool
) -> None:
    """Show the regions of MODEL: operators, algorithm, trace, work, and compile time by stage."""
    given = shapes(fixed)
    with working(f"compiling {model}"):
        from tilework.frontends.compile import lower  # pulls in LLVM; `--help` should not wait for it
        from tilework.loops.text import program_text

        done = lower(model, shapes=given, numerics=numerics, machine=machine)
    found = done.explanation
    if region is not None and not 0 <= region < len(found.regions):
        count = len(found.regions)
        many = f"there are {count} regions, numbered from 0" if count > 1 else "there is one region, number 0"
        there = many if count else "there is no region"
        raise UsageError(1002, f"--region {region}: {there}", where="--region")
    chosen = range(len(found.regions)) if region is None else (region,)
    if as_json:
        rows = [
            {
                "region": n, "name": r.name, "operators": list(r.operators), "algorithm": r.algorithm,
                "choice": r.choice, "trace": r.trace, "flops": str(r.flops), "bytes": str(r.bytes),
                "kernels": list(r.kernels),
                **({"loops": program_text(done.kernels[n].program)} if region is not None else {}),
            }
            for n, r in enumerate(found.regions) if n in chosen
        ]  # fmt: skip
        facts = {"machine": found.machine, "numerics": found.numerics, "arena_bytes": str(found.arena_bytes)}
        sizes = {"constant_bytes": found.constant_bytes, "stages_ms": dict(found.compile_milliseconds)}
        click.echo(json.dumps({"regions": rows, **facts, **sizes}))
        return
    click.echo(f"machine {found.machine}, numerics {found.numerics}")
    for number in chosen:
        row = found.regions[number]
        click.echo(f"{number:3d} {row.name}: {', '.join(row.operators)}")
        click.echo(f"      {row.algorithm}, {row.choice}; {row.flops} flops, {row.bytes} bytes; {row.kernels[0]}")
        if region is not None:
            click.echo(f"      trace: {row.trace or '(the plain nest)'}")
            click.echo(program_text(done.kernels[number].program))
    click.echo(f"arena {found.arena_bytes} bytes, constants {found.constant_bytes} bytes")
    click.echo("; ".join(f"{stage} {ms:.1f} ms" for stage, ms in found.compile_milliseconds))
