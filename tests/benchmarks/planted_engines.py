"""Engines for the tests of the harness: fast, slow, wrong, talkative, missing, broken and dying ones."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

import numpy as np

from benchmarks.harness.engine import Prepared
from benchmarks.harness.result import MissingPeerError


def waiting(seconds: float, value: float = 0.0) -> Prepared:
    """An engine whose call takes the given time."""

    def call() -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    outputs = {"y": np.full((2, 3), value, np.float32), "name with/odd.signs": np.zeros(0, np.int64)}
    return Prepared(call, {"seconds": seconds, "variable": os.environ.get("PLANTED", "")}, lambda: outputs)


def talkative() -> Prepared:
    """An engine that fills both standard streams."""

    def call() -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.write("noise " * 30_000)
            stream.flush()

    return Prepared(call)


def missing(package: str) -> Prepared:
    """An engine that needs a package."""
    import_module(package)
    return Prepared(lambda: None)


def missing_by_name() -> Prepared:
    """An engine that says itself what it lacks."""
    raise MissingPeerError("a compiler", "install one")


def broken() -> Prepared:
    """An engine that cannot be built."""
    raise ValueError("planted fault")


def dying() -> Prepared:
    """An engine that ends its process in its first call."""

    def call() -> None:
        sys.stderr.write("last words")
        sys.stderr.flush()
        os._exit(7)

    return Prepared(call)


def stuck() -> Prepared:
    """An engine whose call never ends."""
    return Prepared(lambda: time.sleep(3600))


def several_cases() -> Prepared:
    """An engine of two cases."""
    values = {"one": 1, "two": 2}
    chosen = "one"

    def select(case: str) -> None:
        nonlocal chosen
        chosen = case

    return Prepared(lambda: None, outputs=lambda: {"y": np.array([values[chosen]])}, select=select)


def off_by(off: float) -> Prepared:
    """An engine of any case whose result is off by so much."""
    return Prepared(lambda: None, outputs=lambda: {"y": np.full(5, 1 + off, np.float32)}, select=str)
