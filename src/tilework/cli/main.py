"""`main`: where the command line begins, and where an interrupt ends it.

Nothing that takes time is imported before an interrupt can be told.
"""

from __future__ import annotations

import contextlib
import sys

from tilework.cli.exit_codes import INTERRUPTED


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ends the process with one of `EXIT_CODES` unless all went well."""
    given = arguments if arguments is not None else sys.argv[1:]
    as_json = "--json" in given
    try:
        from tilework.cli.group import run

        run(given, as_json)
    except KeyboardInterrupt:
        _tell_interrupted(as_json)
        sys.exit(INTERRUPTED)


def _tell_interrupted(as_json: bool) -> None:
    """By plain means: what was being imported may be half there."""
    with contextlib.suppress(OSError):
        print("interrupted", file=sys.stderr)
    if as_json:
        # the form of every other error; written out, so that nothing needs to be imported
        text = '{"error": {"code": null, "message": "interrupted", "where": "", "do": "run it again", "faults": []}}'
        with contextlib.suppress(OSError):
            print(text, flush=True)
