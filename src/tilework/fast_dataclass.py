"""`dataclass` as the standard library's, except that a method is compiled when it is first called.

The standard decorator compiles six methods for every class while its module is imported: about a millisecond a class,
more than half of what importing the compiler takes, though a run makes instances of few of its classes and compares
fewer. Here a class gets stand-ins, and the first call of one puts the real method in its place.

Fields are the standard library's: `dataclasses.fields`, `replace`, `asdict` and `field` work, and a standard dataclass
can derive from one of these. Left out is what nothing here uses: `order`, `slots`, `kw_only`, `InitVar`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from dataclasses import dataclass as standard_dataclass
from functools import cache
from reprlib import recursive_repr
from typing import Any, TypeAlias, TypeVar, cast, dataclass_transform, overload

__all__ = ["dataclass", "field"]

Class = TypeVar("Class", bound=type)
Text: TypeAlias = "Callable[[Any, dict[str, Any]], str]"
"""Writes a method of a class, and puts what it refers to into the names."""


@overload
def dataclass(given: Class, /) -> Class: ...


@overload
def dataclass(*, frozen: bool = False, eq: bool = True) -> Callable[[Class], Class]: ...


@dataclass_transform(field_specifiers=(field,))
def dataclass(given: type | None = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    """Give a class the methods that its annotated fields ask for, as `dataclasses.dataclass` does.

    Raises:
        TypeError: a field without a type, or one without a default behind one with a default; a frozen class that
            derives from one that is not, or the other way round.
        ValueError: a default that is a list, dict or set, which all instances would share.
    """

    def decorated(owner: Any) -> Any:
        return _with_methods(owner, frozen, eq)

    return decorated if given is None else decorated(given)


def _with_methods(owner: Any, frozen: bool, eq: bool) -> Any:
    own = owner.__dict__
    for base in owner.__mro__[1:]:
        settings = base.__dict__.get("__dataclass_params__")
        if settings is not None and settings.frozen != frozen:
            which = "frozen" if settings.frozen else "not frozen"
            raise TypeError(f"{owner.__name__} derives from {base.__name__}, which is {which}, and has to be so too")
    held = _fields(owner)
    sample = _sample(frozen, eq)
    owner.__dataclass_fields__ = held
    owner.__dataclass_params__ = sample.__dataclass_params__
    if "__match_args__" not in own:
        owner.__match_args__ = tuple(name for name, entry in held.items() if entry.init)
    if "__signature__" not in own:
        owner.__signature__ = _SIGNATURE
    _give(owner, "__init__", _later(owner, "__init__", _init_text))
    _give(owner, "__repr__", _repr)
    if eq:
        # as for the standard decorator: a class with its own __eq__ alone has None for a hash, which is nobody's choice
        hashed = own.get("__hash__", MISSING)
        if hashed is MISSING or (hashed is None and "__eq__" in own):
            owner.__hash__ = _later(owner, "__hash__", _hash_text) if frozen else None
        _give(owner, "__eq__", _later(owner, "__eq__", _eq_text))
    if frozen:
        for name, method in _refusals(owner, frozenset(held)).items():
            _give(owner, name, method)
    return owner


def _give(owner: Any, name: str, method: Any) -> None:
    if name not in owner.__dict__:
        setattr(owner, name, method)


@cache
def _sample(frozen: bool, eq: bool) -> Any:
    """A standard dataclass, for what the standard library wants to find in one."""

    @standard_dataclass(frozen=frozen, eq=eq)
    class Sample:
        entry: int

    return Sample


def _fields(owner: Any) -> dict[str, Field[Any]]:
    """Inherited fields, then those of the class itself, as `dataclasses.fields` finds them."""
    found: dict[str, Field[Any]] = {}
    for base in owner.__mro__[-1:0:-1]:
        found |= base.__dict__.get("__dataclass_fields__", {})
    annotations = inspect.get_annotations(owner)
    for name, kind in annotations.items():
        if str(kind).startswith(("ClassVar", "typing.ClassVar")):
            continue
        found[name] = _field(owner, name, kind)
    for name, value in owner.__dict__.items():
        if isinstance(value, Field) and name not in annotations:
            raise TypeError(f"{owner.__name__}.{name} is a field without a type")
    optional = ""
    for name, entry in found.items():
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING:
            if optional:
                raise TypeError(f"{owner.__name__}.{name} has no default, but {optional} before it has one")
        elif entry.init:
            optional = name
    return found


def _field(owner: Any, name: str, kind: Any) -> Field[Any]:
    default = owner.__dict__.get(name, MISSING)
    given = isinstance(default, Field)
    entry = cast("Any", default if given else field(default=default))
    if given:
        if entry.default is MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, entry.default)
    if entry.default is not MISSING and type(entry.default).__hash__ is None:
        raise ValueError(f"{owner.__name__}.{name}: every instance would share this default; give default_factory")
    entry.name = name
    entry.type = kind
    entry.kw_only = False
    # what tells `dataclasses.fields` that this is one
    entry._field_type = _sample(True, True).__dataclass_fields__["entry"]._field_type  # noqa: SLF001
    return entry


def _later(owner: Any, name: str, text: Text) -> Any:
    """A stand-in that puts the method of that text in its own place when it is called first."""

    def method(self: Any, /, *arguments: Any, **named: Any) -> Any:
        return _made(owner, name, text)(self, *arguments, **named)

    method.__name__ = name
    method.__qualname__ = f"{owner.__qualname__}.{name}"
    method.__module__ = owner.__module__
    method.make = lambda: _made(owner, name, text)  # type: ignore[attr-defined]
    return method


def _made(owner: Any, name: str, text: Text) -> Any:
    names: dict[str, Any] = {"__name__": owner.__module__}
    found: dict[str, Any] = {}
    exec(text(owner, names), names, found)
    made = found[name]
    made.__qualname__ = f"{owner.__qualname__}.{name}"
    if hasattr(owner.__dict__.get(name), "make"):
        setattr(owner, name, made)
    if name == "__init__":
        made.__annotations__ = {e.name: e.type for e in owner.__dataclass_fields__.values() if e.init} | {
            "return": None
        }
    return made


def _init_text(owner: Any, names: dict[str, Any]) -> str:
    names |= {"_missing": _FACTORY, "_set": object.__setattr__}
    assign = "_set(_self, {name!r}, {value})" if owner.__dataclass_params__.frozen else "_self.{name} = {value}"
    parameters: list[str] = []
    lines: list[str] = []
    for name, entry in owner.__dataclass_fields__.items():
        value = name
        if entry.default_factory is not MISSING:
            names[f"_make_{name}"] = entry.default_factory
            value = f"_make_{name}()" if not entry.init else f"_make_{name}() if {name} is _missing else {name}"
            parameters += [f"{name}=_missing"] if entry.init else []
        elif entry.init:
            names[f"_default_{name}"] = entry.default
            parameters.append(name if entry.default is MISSING else f"{name}=_default_{name}")
        else:
            continue  # its default, if any, is the class's
        lines.append(assign.format(name=name, value=value))
    lines.append("_self.__post_init__()" if hasattr(owner, "__post_init__") else "pass")
    return f"def __init__({', '.join(['_self', *parameters])}):\n " + "\n ".join(lines)


def _eq_text(owner: Any, _: dict[str, Any]) -> str:
    compared = [entry.name for entry in owner.__dataclass_fields__.values() if entry.compare]
    left, right = _tuple("self", compared), _tuple("other", compared)
    return (
        "def __eq__(self, other):\n if other.__class__ is self.__class__:\n"
        f"  return {left} == {right}\n return NotImplemented"
    )


def _hash_text(owner: Any, _: dict[str, Any]) -> str:
    hashed = [e.name for e in owner.__dataclass_fields__.values() if (e.compare if e.hash is None else e.hash)]
    return f"def __hash__(self):\n return hash({_tuple('self', hashed)})"


def _tuple(holder: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{holder}.{name},' for name in names)})"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (entry.name for entry in self.__dataclass_fields__.values() if entry.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _refusals(owner: Any, names: frozenset[str]) -> dict[str, Any]:
    """What keeps instances as they were made."""

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is owner or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is owner or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


class _Factory:
    """The default that a signature shows for a field whose default is made anew for every instance."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Signature:
    """What `inspect.signature` of a class finds: its parameters, also before the first instance."""

    def __get__(self, instance: Any, owner: Any) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")  # a callable instance has that of its __call__
        method = owner.__init__
        make = getattr(method, "make", None)
        found = inspect.signature(method if make is None else make())
        return found.replace(parameters=list(found.parameters.values())[1:])


_SIGNATURE = _Signature()
