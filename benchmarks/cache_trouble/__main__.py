"""All of it in a process of its own, which has compiled nothing itself and may fork: one JSON object."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.cache_trouble.bytes import flipped
from benchmarks.cache_trouble.full_disk import filled
from benchmarks.cache_trouble.storm import as_told, blown, models

IMPORTED = ("llvmlite.binding", "tilework.compiler.compile", "tilework.frontends.onnx.kept",
            "tilework.frontends.onnx.compiled")  # fmt: skip
"""What every child needs, loaded once."""


def main() -> None:
    """Arguments: seed, processes, kills in all and in a round, bytes of an entry that are changed (0: every one)."""
    seed, processes, kills, a_round, most = map(int, sys.argv[1:])
    for name in IMPORTED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        known = models(folder, seed)
        told = {"flips": flipped(folder, known, seed, most or None), "full": filled(folder, known)}
        print(json.dumps({**told, "storm": as_told(blown(folder, seed, processes, kills, a_round))}))


if __name__ == "__main__":
    main()
