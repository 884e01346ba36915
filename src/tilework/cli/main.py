"""`tilework`: the command group, and how errors reach a person.

Exit codes: 0 fine; 1 a check or comparison failed; 2 wrong use of the command; 3 the model or its inputs are wrong;
4 it could not be compiled; 5 it failed while it ran; 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from typing import Any, cast

import click

from tilework.errors import CallError, CodegenError, FrontendError, RunError, TileworkError, UsageError
from tilework.variants import find_variant, list_variants

COMMANDS = "tilework.cli.commands"


class Commands(click.Group):
    """Finds a command by its file name in `cli/commands/`, importing only that one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands there are."""
        return list(list_variants(COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command called `cmd_name`, or None."""
        if cmd_name not in list_variants(COMMANDS):
            return None
        return cast("click.Command", find_variant(COMMANDS, cmd_name, "command"))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tilework")
def tilework() -> None:
    """Compile and run tensor models on this machine."""


def exit_code(error: TileworkError) -> int:
    """The process's exit code for an error."""
    match error:
        case UsageError():
            return 2
        case FrontendError() | CallError():
            return 3
        case CodegenError():
            return 4
        case RunError():
            return 5
        case _:
            return 4


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ends the process with one of the exit codes above."""
    try:
        tilework.main(arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        _say("interrupted")
        sys.exit(130)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except TileworkError as error:
        report = _trace_file()
        if "--json" in (arguments if arguments is not None else sys.argv[1:]):
            found: dict[str, Any] = {"code": f"TW{error.code}", "message": error.message, "where": error.where}
            click.echo(json.dumps({"error": {**found, "do": error.hint}}))
        _say(str(error))
        _say(f"  (full trace: {report})")
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # whoever read our output has gone; nothing more can be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _trace_file() -> str:
    """Write the trace of the current exception to a file of its own, and return its path."""
    with tempfile.NamedTemporaryFile("w", prefix="tilework-trace-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    return file.name
