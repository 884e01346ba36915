"""How errors reach a person, a program that reads `--json`, and the exit code."""

from __future__ import annotations

import errno
import json
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tilework import environment
from tilework.cli.exit_codes import BROKEN_OUTPUT, FAULT, NOT_COMPILED, RUN_FAILED, WRONG_INPUT, WRONG_USE
from tilework.errors import (
    CallError,
    FileFormatError,
    FrontendError,
    MissingPackageError,
    OutOfMemoryError,
    RunError,
    TileworkError,
    UsageError,
    VerificationError,
)

_NO_OUTPUT = frozenset((errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EPIPE))
_FILES_NOT_READ = frozenset((1902, 1903, 1904, 1906))


def say(text: str) -> None:
    """One message on standard error, whatever became of it."""
    try:
        click.echo(text, err=True)
    except OSError:
        return  # nobody can be told; the exit code still says it


def exit_code(error: TileworkError) -> int:
    """The process's exit code for an error."""
    match error:
        case UsageError() | MissingPackageError():
            return WRONG_USE
        case OutOfMemoryError() | RunError():
            return RUN_FAILED
        case FrontendError() | CallError():
            return WRONG_INPUT
        case FileFormatError():
            return WRONG_INPUT if error.code in _FILES_NOT_READ else BROKEN_OUTPUT
        case _:
            return NOT_COMPILED


def output_failed(error: OSError) -> bool:
    """Whether an error comes from writing what a command prints: it names no file, and tells of a device or pipe."""
    return error.filename is None and error.errno in _NO_OUTPUT


def tell(error: TileworkError, as_json: bool, *, said: bool = False) -> int:
    """Tell of an expected error (`said`: a person was told already) and return its exit code.

    Its trace is of no use to the user and is written only where `TILEWORK_TRACE` asks for it.
    """
    if not said:
        say(str(error))
    wanted = environment.read(environment.TRACE)
    if wanted is not None:
        say(f"  trace: {_written_trace(wanted)}")
    if as_json:
        found: dict[str, Any] = {"code": f"TW{error.code}", "message": error.message, "where": error.where}
        faults = error.faults if isinstance(error, (FrontendError, VerificationError)) else ()
        found["do"] = error.hint
        found["faults"] = [{"code": f"TW{f.code}", "message": f.message, "where": f.where} for f in faults]
        _print_error(found)
    return exit_code(error)


def tell_unexpected(error: BaseException, as_json: bool) -> int:
    """Tell of an exception that nobody foresaw, its trace in a file, and return the exit code."""
    trace = _written_trace(environment.read(environment.TRACE))
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    say(f"a fault in Tilework itself: {message}\n  trace: {trace}")
    say("  do: report it with the trace and, if you can, the model")
    if as_json:
        _print_error({"code": None, "message": message, "where": "", "do": "report it", "faults": [], "trace": trace})
    return FAULT


def _print_error(found: Mapping[str, Any]) -> None:
    try:
        click.echo(json.dumps({"error": found}))
    except OSError as problem:
        say(f"the error cannot be written as JSON: {problem.strerror}")


def _written_trace(path: Path | None) -> str:
    """Write the trace of the current exception to the path, or else to a file of its own; say where it is."""
    text = traceback.format_exc()
    try:
        if path is not None:
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
            return str(path)
        with tempfile.NamedTemporaryFile(
            "w", prefix="tilework-trace-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(text)
        return file.name
    except OSError as problem:
        return f"it could not be written ({problem.strerror}), so here it is\n{text}"
