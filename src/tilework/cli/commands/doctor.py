"""`tilework doctor`: what this machine is and has, whether Tilework works here, and what to do where it does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tilework.cli import options
from tilework.cli.exit_codes import UNHEALTHY
from tilework.cli.progress import working

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilework.cli.doctor.section import Section


@click.command("doctor")
@options.as_json
def command(as_json: bool) -> None:
    """Show what this machine is, what is installed, the cache and the variables; try a small model; give advice."""
    with working("looking") as tell:
        sections = look(tell)
    advice = [one for section in sections for one in section.advice]
    problems = sum(one.serious for one in advice)
    if as_json:
        facts = {section.name: dict(section.facts) for section in sections}
        click.echo(json.dumps({"well": not problems, **facts, "advice": [one.as_json() for one in advice]}))
    else:
        for label, text in (line for section in sections for line in section.lines):
            click.echo(f"{label:11} {text}")
        for one in sorted(advice, key=lambda one: not one.serious):
            click.echo(str(one))
        if not advice:
            click.echo("all is well")
    if problems:
        click.get_current_context().exit(UNHEALTHY)


def look(tell: Callable[[str], None]) -> list[Section]:
    """Every section, in the order in which they are shown."""
    from tilework.cli.doctor.cache import cache
    from tilework.cli.doctor.memory import memory
    from tilework.cli.doctor.processor import processor
    from tilework.cli.doctor.smoke import smoke_test
    from tilework.cli.doctor.variables import variables
    from tilework.cli.doctor.versions import versions
    from tilework.machine.host import detect

    found = [versions(), processor(detect()), memory(), variables(), cache()]
    tell("compiling y = x + 1")
    return [*found, smoke_test()]
