"""`cache-keys`: keys that forget a part, or take one too many, are found out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from benchmarks import cache_keys
from benchmarks.harness.result import Options
from benchmarks.key_pairs import apart, shared
from benchmarks.key_pairs.compiling import Used
from benchmarks.key_pairs.pairs import Pair
from tilework.cache.keys import Key
from tilework.codegen.cpu.objects import CompileTarget
from tilework.runtime.kept_objects import KeptObjects

ALL: Mapping[str, Pair] = {f"{pair.wanted}: {pair.name}": pair for pair in (*shared.PAIRS, *apart.PAIRS)}


def wrong(names: Sequence[str], seed: int = 3) -> list[str]:
    """What the benchmark says of some pairs that are not as they must be."""
    result = cache_keys.run(Options(seed=seed), [ALL[name] for name in names])
    found = [row[3] for row in result.rows]
    assert result.holds == (not any(found))
    return found


def test_there_are_thirty_of_each() -> None:
    assert (len(shared.PAIRS), len(apart.PAIRS)) == (30, 30)
    assert len(ALL) == 60


def test_some_pairs_are_as_they_must_be() -> None:
    names = ["shared: a limit of memory", "shared: nodes in another order", "shared: another stride of an axis of 1",
             "apart: float32 and float64", "apart: alignment assumed",
             "apart: a processor without fused multiply-add"]  # fmt: skip
    assert wrong(names) == [""] * len(names)


def test_a_key_without_features_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = KeptObjects.key

    def key(self: KeptObjects, text: str, target: CompileTarget) -> Key:
        found = whole(self, text, target)
        return Key(found.kind, tuple(part for part in found.parts if part[0] != "features"))

    monkeypatch.setattr(KeptObjects, "key", key)
    assert wrong(["apart: a processor without fused multiply-add", "apart: another extent"]) == ["shared", ""]


def test_a_key_with_a_part_too_many_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = KeptObjects.key
    count = iter(range(1000))

    def key(self: KeptObjects, text: str, target: CompileTarget) -> Key:
        found = whole(self, text, target)
        return Key(found.kind, (*found.parts, ("time", str(next(count)))))

    monkeypatch.setattr(KeptObjects, "key", key)
    assert wrong(["shared: another name of the graph"]) == ["apart"]


def test_a_pair_that_compiles_nothing_counts_as_wrong() -> None:
    nothing = Used(frozenset(), frozenset(), frozenset(), found_model=False, results="")
    pair = ALL["shared: another name of the graph"]
    assert pair.verdict(nothing, nothing) == "the first side compiled no kernel"
    some = Used(frozenset("ab"), frozenset("ab"), frozenset("m"), found_model=False, results="")
    other = Used(frozenset("bc"), frozenset("c"), frozenset("n"), found_model=False, results="")
    assert pair.verdict(some, other) == "half shared"


def test_shared_code_that_computes_something_else_is_found_out() -> None:
    pair = ALL["shared: other weights of the same shape"]
    strict = Pair(pair.name, "shared", pair.first, pair.second)
    result = cache_keys.run(Options(seed=1), [strict])
    assert [row[3] for row in result.rows] == ["shared, with other results"]
