"""`tilework`: the command group, and how each of its commands ends."""

from __future__ import annotations

import os
import sys
from typing import cast

import click

from tilework import environment
from tilework.cli.exit_codes import BROKEN_OUTPUT, EXIT_CODES
from tilework.cli.failures import output_failed, say, tell, tell_unexpected
from tilework.errors import OutOfMemoryError, TileworkError, UsageError
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


_CODES = "\n".join(f"{code:>5}  {meaning}" for code, meaning in EXIT_CODES.items())


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nExit codes:\n{_CODES}",
)
@click.version_option(package_name="tilework", prog_name="tilework")
def tilework() -> None:
    """Compile and run tensor models on this machine."""
    for name in environment.unknown():
        say(f"note: nothing reads the environment variable {name}")


def run(given: list[str], as_json: bool) -> None:
    """Run a command; ends the process with one of `EXIT_CODES` unless all went well.

    Raises `KeyboardInterrupt` where the command was interrupted.
    """
    try:
        ended = tilework.main(given, standalone_mode=False)
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - it is None where it was closed
            say("[TW1901] the output cannot be written: it is closed")
            sys.exit(BROKEN_OUTPUT)
        sys.stdout.flush()
        if isinstance(ended, int) and ended:  # `context.exit`: all was said, and yet all is not well
            sys.exit(ended)
    except click.ClickException as error:
        error.show()
        sys.exit(tell(UsageError(1002, error.format_message()), as_json, said=True))
    except click.Abort:  # what click makes of an interrupt
        raise KeyboardInterrupt from None
    except TileworkError as error:
        sys.exit(tell(error, as_json))
    except MemoryError as error:
        sys.exit(tell(OutOfMemoryError(1710, f"there is no memory left: {error}".rstrip(": ")), as_json))
    except OSError as error:
        if not output_failed(error):
            sys.exit(tell_unexpected(error, as_json))
        if not isinstance(error, BrokenPipeError):  # else whoever read our output has gone: there is nothing to say
            say(f"[TW1901] the output cannot be written: {error.strerror}")
        # what is still buffered would be tried again, and fail again, while the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(BROKEN_OUTPUT)
    except Exception as error:  # noqa: BLE001 - this is where every fault of ours becomes a message
        sys.exit(tell_unexpected(error, as_json))
