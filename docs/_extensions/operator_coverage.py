"""The page of ONNX operators: which are imported, in which versions, with which element types, and how.

Everything is read from the registries of the importer and from the schemas of the package onnx, so that the page is
what the code does. Reasons for what is missing are the only thing written by hand; a test holds them against the
registries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tilework import dtypes
from tilework.dtypes import DType
from tilework.frontends.onnx.black_boxes import FUNCTIONS
from tilework.frontends.onnx.check import OLDEST_OPSET
from tilework.frontends.onnx.converters import converters, qualified
from tilework.frontends.onnx.moved_strings import MOVERS
from tilework.frontends.onnx.schema import ML_DOMAIN
from tilework.frontends.onnx.sequences import SEQUENCE_OPERATORS
from tilework.frontends.onnx.signature import CONTROL_FLOW
from tilework.frontends.onnx.tensors import ELEMENT_TYPES, ONNX_NAMES
from tilework.frontends.onnx.words import of_strings

MISSING = {
    "ImageDecoder": "decoding image files is left to a library before the model",
    "ai.onnx.preview.training::Gradient": "a model is differentiated before it is exported",
}
"""Why an operator is not imported, by its key."""

HOW = {
    "generated": "converted to Tilework's own operators, all of which become machine code",
    "composed": "imported through the body that the package onnx has for it, node by node",
    "control flow": "its bodies run inside the plan",
    "resolved": "sequences and optionals are taken apart while the model is imported",
    "black box": "run by a function of Python's between generated code: strings and maps have no machine form",
    "missing": "",
}

_GROUPS: tuple[tuple[str, tuple[DType, ...]], ...] = (
    ("float16, float32, float64", (dtypes.float16, dtypes.float32, dtypes.float64)),
    ("int8 to int64", (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)),
    ("uint8 to uint64", (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)),
    ("float8", tuple(d for d in dtypes.ALL if d.name.startswith("float8") and d != dtypes.float8_e8m0fnu)),
    ("(u)int4", (dtypes.int4, dtypes.uint4)),
    ("(u)int2", (dtypes.int2, dtypes.uint2)),
)
"""Types that schemas mostly name together."""

_TYPES = {ONNX_NAMES.get(dtype, dtype.name): dtype for dtype in ELEMENT_TYPES.values()}


def schemas() -> dict[str, list[Any]]:
    """Every version of every operator that the package onnx knows, oldest first, by the operator's key."""
    from onnx import defs

    found: defaultdict[str, list[Any]] = defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        found[qualified(schema.domain, schema.name)].append(schema)
    return {key: sorted(versions, key=lambda s: s.since_version) for key, versions in sorted(found.items())}


def how(schema: Any) -> str:
    """How the newest version of an operator is imported: a key of `HOW`."""
    key = qualified(schema.domain, schema.name)
    if key in CONTROL_FLOW:
        return "control flow"
    if key in SEQUENCE_OPERATORS:
        return "resolved"
    if key in converters():
        texts = all("string" in kind or "map" in kind for kind in schema.inputs[0].types) if schema.inputs else False
        outside = schema.name in FUNCTIONS and (schema.domain == ML_DOMAIN or texts)
        return "black box" if outside else "generated"
    return "composed" if schema.has_function or schema.has_context_dependent_function else "missing"


def element_types(schema: Any) -> tuple[list[DType], list[str]]:
    """Element types that a schema names for its first operand, or its result where it has none: known ones, others."""
    formals = list(schema.inputs) or list(schema.outputs)
    if not formals:
        return [], []
    names = [text.split("tensor(")[-1].strip("()") for text in sorted(formals[0].types) if "tensor(" in text]
    known = {_TYPES[name] for name in names if name in _TYPES}
    ordered = [dtype for dtype in dtypes.ALL if dtype in known and dtype.kind != "complex"]
    rest = dict.fromkeys(name for name in names if name not in _TYPES or _TYPES[name].kind == "complex")
    return ordered, list(rest)


def grouped(found: Iterable[DType]) -> str:
    """Element types as words, those that mostly stand together under one name."""
    left = list(found)
    words: list[str] = []
    for name, members in _GROUPS:
        if all(member in left for member in members):
            words.append(name)
            left = [dtype for dtype in left if dtype not in members]
    return ", ".join([*words, *map(str, left)])


def others(key: str, names: Iterable[str]) -> str:
    """What happens with an operator's types that no code is generated for."""
    reasons: list[str] = []
    for name in names:
        if name == "string":
            boxed = "black box" if of_strings(key) in converters() else "missing"
            reasons.append(f"strings: {'as positions in a list of words' if key in MOVERS else boxed}")
        elif name.startswith("complex"):
            reasons.append("complex: missing")
        else:
            reasons.append(f"{name}: missing")
    return "; ".join(dict.fromkeys(reasons))


def row(key: str, versions: list[Any]) -> str:
    """An operator's line of the table."""
    newest = versions[-1]
    chosen = how(newest)
    if newest.deprecated:
        state = f"{chosen} (deprecated since {newest.since_version})"
        newest = next((v for v in reversed(versions) if not v.deprecated), newest)
    else:
        state = chosen
    if chosen == "missing":
        state = f"missing: {MISSING.get(key, '')}"
    known, rest = element_types(newest)
    listed = ", ".join(str(version.since_version) for version in versions)
    remarks = others(key, rest) if chosen not in ("missing", "black box") else ""
    return f"| {newest.name} | {listed} | {grouped(known)} | {state}{f'; {remarks}' if remarks else ''} |"


def page() -> str:
    """The whole page."""
    found = schemas()
    domains: defaultdict[str, list[str]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    for key, versions in found.items():
        domains[versions[-1].domain or "ai.onnx"].append(row(key, versions))
        counts[how(versions[-1])] += 1
    total = sum(counts.values())
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda entry: -entry[1]))
    legend = "\n".join(f"- **{name}**: {text}" for name, text in HOW.items() if text)
    sections = [
        f"## {domain}\n\n| operator | versions | element types | how |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
        for domain, rows in sorted(domains.items())
    ]
    foreign = sorted(set(converters()) - set(found) - set(map(of_strings, found)))
    if foreign:
        listed = "\n".join(f"- {key.replace('::', ': ')}" for key in foreign)
        sections.append(f"## Of other domains\n\n{listed}\n")
    head = (
        f"Of {total} operators: {told}. Models of operator set {OLDEST_OPSET} and newer are read; a version counts "
        "from the operator set in which it stands until the next one. Element types are those of the first operand in "
        "the newest version; floating types are computed in float32 or float64 and rounded where they are stored. "
        "What a node's types or attributes rule out is refused with a code that names the node."
    )
    return f"# ONNX operators\n\n{head}\n\n{legend}\n\n" + "\n".join(sections)
