"""The environment variables that Tilework reads: what is set, and what makes no sense."""

from __future__ import annotations

import difflib

from tilework import environment
from tilework.cli.doctor.section import Advice, Section
from tilework.errors import TileworkError
from tilework.machine.finder import machine
from tilework.machine.host import check_runs_here
from tilework.runtime.processors import thread_count


def variables() -> Section:
    """What is set, checked."""
    told: dict[str, str] = {}
    bad: list[str] = []
    advice: list[Advice] = []
    for name, variable in environment.VARIABLES.items():
        text = environment.given(variable)
        if text is None:
            continue
        told[name] = text
        try:
            environment.read(variable)
            _try(name, text)
        except TileworkError as error:
            bad.append(name)
            message = error.message if name in error.message else f"{name}={text}: {error.message}"
            advice.append(Advice(message, error.hint, True, error.code))
    base = environment.read(environment.XDG_CACHE_HOME)
    if base is not None and not base.is_absolute():
        text = f"XDG_CACHE_HOME={base} is ignored: it is no absolute path"
        advice.append(Advice(text, "Give a path that begins with /."))
    unread = environment.unknown()
    for name in unread:
        near = difflib.get_close_matches(name, environment.VARIABLES, 1)
        do = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(environment.VARIABLES)}."
        advice.append(Advice(f"nothing reads {name}", do))
    shown = [f"{name}={text}{' (makes no sense)' if name in bad else ''}" for name, text in told.items()]
    facts = {"set": told, "bad": bad, "unread": list(unread)}
    return Section("variables", facts, tuple(("variable", one) for one in shown or ["none is set"]), tuple(advice))


def _try(name: str, text: str) -> None:
    """What is right in form and may yet be wrong here; raises `TileworkError`."""
    if name == environment.MACHINE.name:
        check_runs_here(machine(text))
    elif name == environment.NUM_THREADS.name:
        thread_count()
