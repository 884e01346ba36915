"""`tilework compile`: print a stage of a compilation."""

from __future__ import annotations

from pathlib import Path

import click

from tilework.cli.parsing import shapes


@click.command("compile")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--emit", type=click.Choice(["graph", "loops", "llvm", "asm", "plan"]), default="plan", show_default=True,
    help="The stage to print.",
)  # fmt: skip
@click.option("--shape", "fixed", multiple=True, metavar="NAME=1x3x320x320", help="Fix an input's shape.")
@click.option("--machine", default="host", show_default=True, help="host, x86_64_v3, x86_64_v4 or aarch64.")
@click.option("--numerics", default="default", show_default=True, help="strict, default or fast.")
def command(model: Path, emit: str, fixed: tuple[str, ...], machine: str, numerics: str) -> None:
    """Compile MODEL (an ONNX file) and print one stage of it."""
    from tilework.codegen.cpu.jit import emit_assembly  # pulls in LLVM; `--help` should not wait for it
    from tilework.frontends.compile import lower
    from tilework.graph.text import to_text
    from tilework.loops.text import program_text
    from tilework.machine.finder import machine as machine_named
    from tilework.plan.text import plan_text

    done = lower(model, shapes=shapes(fixed), numerics=numerics, machine=machine)
    match emit:
        case "graph":
            click.echo(to_text(done.graph))
        case "loops":
            for kernel in done.kernels:
                click.echo(f"# {kernel.region.name}: {', '.join(kernel.region.operators)}")
                click.echo(program_text(kernel.program))
        case "llvm":
            for text in done.llvm:
                click.echo(text)
        case "asm":
            target = machine_named(machine)
            for text in done.llvm:
                click.echo(emit_assembly(text, target))
        case _:
            click.echo(plan_text(done.plan))
