"""`tilework explain`: what was decided for each region of a model, and why."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tilework.cli.parsing import shapes
from tilework.errors import UsageError


@click.command("explain")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--region", type=int, default=None, metavar="N", help="One region in full: its schedule and loops.")
@click.option("--shape", "fixed", multiple=True, metavar="NAME=1x3x320x320", help="Fix an input's shape.")
@click.option("--numerics", default="default", show_default=True, help="strict, default or fast.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(model: Path, region: int | None, fixed: tuple[str, ...], numerics: str, as_json: bool) -> None:
    """Show the regions of MODEL: operators, algorithm, trace, work, and compile time by stage."""
    from tilework.frontends.compile import lower  # pulls in LLVM; `--help` should not wait for it
    from tilework.loops.text import program_text

    done = lower(model, shapes=shapes(fixed), numerics=numerics)
    found = done.explanation
    if region is not None and not 0 <= region < len(found.regions):
        raise UsageError(1002, f"--region {region}: there are {len(found.regions)} regions, from 0")
    chosen = range(len(found.regions)) if region is None else (region,)
    if as_json:
        rows = [
            {
                "region": n, "name": r.name, "operators": list(r.operators), "algorithm": r.algorithm,
                "choice": r.choice, "trace": r.trace, "flops": str(r.flops), "bytes": str(r.bytes),
                "kernels": list(r.kernels),
            }
            for n, r in enumerate(found.regions) if n in chosen
        ]  # fmt: skip
        stages = dict(found.compile_milliseconds)
        click.echo(json.dumps({"regions": rows, "stages_ms": stages, "arena_bytes": str(found.arena_bytes)}))
        return
    for number in chosen:
        row = found.regions[number]
        click.echo(f"{number:3d} {row.name}: {', '.join(row.operators)}")
        click.echo(f"      {row.algorithm}, {row.choice}; {row.flops} flops, {row.bytes} bytes; {row.kernels[0]}")
        if region is not None:
            click.echo(f"      trace: {row.trace or '(the plain nest)'}")
            click.echo(program_text(done.kernels[number].program))
    click.echo(f"arena {found.arena_bytes} bytes, constants {found.constant_bytes} bytes")
    click.echo("; ".join(f"{stage} {ms:.1f} ms" for stage, ms in found.compile_milliseconds))
