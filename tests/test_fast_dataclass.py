"""The dataclasses of this package against the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tilework
from tilework import fast_dataclass

Make = Callable[..., Any]
BOTH = {"standard": dataclasses.dataclass, "fast": fast_dataclass.dataclass}


@fast_dataclass.dataclass(frozen=True)
class Point:
    """A class that pickle finds."""

    x: int
    y: tuple[int, ...] = (1,)


def family(dataclass: Make) -> list[Any]:
    """The kinds of classes there are."""

    @dataclass(frozen=True)
    class Base:
        kind: ClassVar[str] = "base"
        a: int
        b: tuple[float, ...] = (1.0,)
        c: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
        d: int = dataclasses.field(default=3, compare=False, repr=False)

    @dataclass(frozen=True)
    class Derived(Base):
        b: tuple[float, ...] = (2.0,)
        e: str = "e"

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("a")

    @dataclass
    class Mutable:
        a: int
        b: list[int] = dataclasses.field(default_factory=list[int])
        c: int = dataclasses.field(init=False, default=7)
        d: int = dataclasses.field(init=False, compare=False, repr=False)

    @dataclass(frozen=True, eq=False)
    class ById:
        a: int
        b: int = 2
        c: int = 3

    @dataclass(frozen=True)
    class Own:
        a: int
        b: int = 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True)
    class Empty:
        pass

    class Plain(Base):
        pass

    return [Base, Derived, Mutable, ById, Own, Empty, Plain]


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, (2.0,)), {}),
    ((-1,), {}),
    ((), {"a": 4}),
    ((1,), {"a": 4}),
    ((1,), {"nothing": 4}),
    ((1, 2, 3, 4, 5, 6, 7), {}),
    ((float("nan"),), {}),
    (([],), {}),
]


def outcome(action: Callable[[], Any]) -> Any:
    try:
        found = action()
    except (TypeError, ValueError, AttributeError) as problem:
        return type(problem)
    return repr(found).replace("_family", "family") if not isinstance(found, (bool, int)) else found


def observed(dataclass: Make, number: int) -> list[Any]:
    made: list[Any] = []
    seen: list[Any] = []
    owner = family(dataclass)[number]
    for arguments, named in CALLS:
        try:
            made.append(owner(*arguments, **named))
        except (TypeError, ValueError, AttributeError) as problem:
            seen.append((arguments, type(problem)))
    for one in made:
        seen.append(repr(one))
        seen.append("number" if owner.__hash__ is object.__hash__ else outcome(lambda one=one: hash(one)))
        seen.append([one == other for other in made] + [one == 3, one != 3, one == copy.copy(one)])
        seen.append([getattr(one, name, None) for name in "abce"])
        seen.append(outcome(lambda one=one: setattr(copy.copy(one), "a", 5)))
        seen.append(outcome(lambda one=one: setattr(copy.copy(one), "other", 5)))
        seen.append(outcome(lambda one=one: delattr(copy.copy(one), "a")))
        seen.append(outcome(lambda one=one: dataclasses.replace(one, a=9).a))
        seen.append(outcome(lambda one=one: sorted(dataclasses.asdict(one))) if owner.__name__ != "Mutable" else "")
    seen.append([(f.name, f.type, f.init, f.compare, f.repr) for f in dataclasses.fields(owner)])
    seen.append(owner.__match_args__)
    seen.append(str(inspect.signature(owner)))
    seen.append(dataclasses.is_dataclass(owner))
    return seen


@pytest.mark.parametrize("number", range(7))
def test_same_as_the_standard_one(number: int) -> None:
    assert observed(BOTH["fast"], number) == observed(BOTH["standard"], number)


def test_a_standard_dataclass_derives_from_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Further(Point):
        z: int = 3

    assert Further(1, (2,)) == Further(1, (2,), 3)
    assert [f.name for f in dataclasses.fields(Further)] == ["x", "y", "z"]
    with pytest.raises(TypeError, match="non-frozen"):

        @dataclasses.dataclass  # pyright: ignore[reportGeneralTypeIssues]
        class _Loose(Point):  # pyright: ignore[reportUnusedClass]
            z: int = 3


def test_pickled_and_copied() -> None:
    one = Point(3, (4,))
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    assert hash(copy.copy(one)) == hash(one)


def test_an_instance_has_the_signature_of_its_call() -> None:
    @fast_dataclass.dataclass(frozen=True)
    class Adds:
        a: int

        def __call__(self, number: int) -> int:
            return self.a + number

    assert list(inspect.signature(Adds(1)).parameters) == ["number"]
    assert list(inspect.signature(Adds).parameters) == ["a"]


def test_several_threads_make_the_first_instances() -> None:
    for _ in range(20):
        owner = family(BOTH["fast"])[0]
        found: list[Any] = []
        start = threading.Barrier(4)

        def work(owner: Any = owner, found: list[Any] = found, start: threading.Barrier = start) -> None:
            start.wait()
            found.append(owner(1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert all(one == found[0] for one in found)


def test_mistakes_are_refused() -> None:
    with pytest.raises(TypeError, match="has no default"):

        @fast_dataclass.dataclass
        class _Order:  # pyright: ignore[reportUnusedClass]
            a: int = 1
            b: int  # pyright: ignore[reportGeneralTypeIssues]

    with pytest.raises(ValueError, match="share"):

        @fast_dataclass.dataclass
        class _Shared:  # pyright: ignore[reportUnusedClass]
            a: list[int] = []  # noqa: RUF012

    with pytest.raises(TypeError, match="without a type"):

        @fast_dataclass.dataclass
        class _Untyped:  # pyright: ignore[reportUnusedClass]
            a = dataclasses.field(default=1)  # pyright: ignore[reportGeneralTypeIssues]


def test_frozen_classes_derive_from_frozen_ones() -> None:
    with pytest.raises(TypeError, match="is frozen"):

        @fast_dataclass.dataclass  # pyright: ignore[reportGeneralTypeIssues]
        class _Loose(Point):  # pyright: ignore[reportUnusedClass]
            z: int = 3

    @fast_dataclass.dataclass
    class Loose:
        z: int = 3

    with pytest.raises(TypeError, match="is not frozen"):

        @fast_dataclass.dataclass(frozen=True)  # pyright: ignore[reportGeneralTypeIssues]
        class _Tight(Loose):  # pyright: ignore[reportUnusedClass]
            y: int = 3


def test_no_method_is_compiled_by_an_import() -> None:
    script = (
        "import tilework.compiler.compile, sys, inspect\n"
        "found = [v for m in list(sys.modules.values()) if m.__name__.startswith('tilework')"
        " for v in vars(m).values() if inspect.isclass(v) and '__dataclass_fields__' in v.__dict__]\n"
        "late = [v for v in found if hasattr(v.__dict__.get('__eq__'), 'make')]\n"
        "print(len(set(found)), len(set(late)))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    classes, late = map(int, done.stdout.split())
    assert classes > 200
    assert late > classes // 2


def test_the_package_uses_them() -> None:
    """A class with slots is the standard library's: only that one makes it anew."""
    source = Path(tilework.__file__).parent
    standard = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(
            r"^\s*from dataclasses import .*\bdataclass\b|^import dataclasses as", path.read_text(), re.MULTILINE
        )
    }
    assert standard == {"fast_dataclass.py"}
