"""What a cache survives: processes killed while they compile, every byte of an entry changed, a disk that is full.

*Killed.* 64 processes at once compile the same and different small models in one empty folder, are killed (SIGKILL) at
random moments, and others take their places, until 500 were; then one process more compiles each model. Every process
that lives compares what its model computes with what it computes without a cache. *Compiles per key*: a process writes
down a key (of code, or of a whole model) once it has made it and keeping it is done; in a round, which begins with an
empty folder, those lines are divided by the different keys among them. One made by a process that was killed before it
was kept is no line: somebody has to make it again. Nothing may be set aside as damaged, as nobody damages anything.

*Changed.* Every byte of an entry of each kind (code, model with its plan, names of a model's files) is changed by one
bit in turn, entries are cut off and made longer: both ways of reading must find nothing and set it aside. Some of the
changes are come upon by a whole compilation too.

*Full.* Caches on file systems of 4 to 160 KiB (or, where none may be mounted, with a limit on the size of files):
models compile as if there were none, and what is there is whole.

An error with a code counts as a failure as well as one without: nothing of this is the user's mistake.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure
from benchmarks.harness.told import told_by

PROCESSES, KILLS, A_ROUND = 64, 500, 40
FEW_PROCESSES, FEW_KILLS = 16, 30
FEW_BYTES = 400
"""In the quick form: processes, kills, and bytes of each entry, drawn."""
COMPILES = 1.1
SECONDS = 3600.0


def judged(told: dict[str, Any], kills: int) -> Result:
    """The figures of what the process told."""
    storm, flips, full = told["storm"], told["flips"], told["full"]
    coded, uncoded = ([text for part in (storm, flips, full) for text in part[kind]] for kind in ("coded", "uncoded"))
    wrong = storm["wrong"] + flips["wrong"] + full["wrong"]
    silent = storm["silent"] + sum(
        part["wanted"] - part["right"] - part["wrong"] - len(part["coded"]) - len(part["uncoded"])
        for part in (flips, full)
    )
    rows = [
        ["killed", str(storm["processes"]), str(storm["killed"]), str(storm["right"]), str(storm["wrong"])],
        ["changed", str(flips["changes"]), str(len(flips["missed"])), str(flips["right"]), str(flips["wrong"])],
        ["full", str(full["wanted"]), str(full["broken"]), str(full["right"]), str(full["wrong"])],
    ]
    notes = [
        f"killed {storm['killed']} of {storm['processes']}; {storm['compiles']} compilations of {storm['keys']} keys",
        f"bytes changed: {flips['changes']} changes of entries of {flips['kinds']} bytes",
        f"full: {', '.join(full['how'])}",
        *(f"failed: {text}" for text in [*uncoded, *coded][:5]),
        *(f"not caught: {text}" for text in flips["missed"][:5]),
    ]
    return Result(
        figures=[
            Figure("wrong results", wrong, "", Bar("<=", 0)),
            Figure("errors without a code", len(uncoded), "", Bar("<=", 0)),
            check_figure("no other errors, and every process that lived told its result", not coded and not silent),
            Figure("compiles per key", storm["compiles"] / max(storm["keys"], 1), "", Bar("<=", COMPILES)),
            Figure("processes killed", storm["killed"], "", Bar(">=", kills)),
            Figure("changes not caught", len(flips["missed"]), "", Bar("<=", 0)),
            check_figure("each kind of entry was changed", set(flips["kinds"]) == {"object", "model", "model files"}),
            check_figure("nothing damaged or hung", not storm["damaged"] and not storm["hung"] and not full["broken"]),
            check_figure("the disk was full", full["room lacked"]),
        ],
        columns=["cache", "processes or changes", "killed, missed, broken", "right", "wrong"],
        rows=rows,
        notes=notes,
        samples=told,
    )


def run(options: Options) -> Result:
    """All three, in a process of their own that may fork. Raises `RuntimeError` where that process fails."""
    chosen = (FEW_PROCESSES, FEW_KILLS, A_ROUND // 2, FEW_BYTES) if options.quick else (PROCESSES, KILLS, A_ROUND, 0)
    told = told_by("benchmarks.cache_trouble", *map(str, (options.seed, *chosen)), seconds=SECONDS)
    if "storm" not in told:
        raise RuntimeError(f"{told['status']}: {told['why']}")
    return judged(told, chosen[1])
