"""Reading the text form of graphs (see `graph.text`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from tilework.dims import Dim, Symbol, parse_dim
from tilework.dtypes import DType, dtype_named, integer_range
from tilework.errors import ParseError, UsageError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import (
    MAXIMUM_NESTING,
    Array,
    Attribute,
    Constant,
    Graph,
    GraphSignature,
    InputPolicy,
    Node,
    OutputPolicy,
    Value,
)
from tilework.graph.types import OpaqueType, TensorType, TokenType, ValueType

_TOKEN = re.compile(
    r"""(?P<number>-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w])|(?:inf|nan)(?![\w.])))
      | (?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
      | (?P<text>"(?:[^"\\\n]|\\.)*")
      | (?P<mark>\.\.|[{}()\[\]<>:,=])""",
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_NOTHING: Mapping[str, Array] = MappingProxyType({})


def parse(text: str, constants: Mapping[str, Array] = _NOTHING) -> Graph:
    """Read one graph. `constants` has the arrays printed by hash, by that hash (see `constants_by_digest`) or by name.

    Raises `ParseError` 1202 (line and column in `where`), 1211 (nested too deep), 1212 (a constant that is missing or
    not the one printed). The graph is not verified.
    """
    reader = _Reader(text)
    graph = _Graphs(reader, constants).graph(0)
    if reader.peek().kind != "end":
        reader.fail("the text goes on after the graph")
    return graph


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Reader:
    """The text, read token by token; the insides of brackets can be read raw."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def fail(self, message: str, at: int | None = None, code: int = 1202) -> NoReturn:
        place = self.peek_start() if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        raise ParseError(code, message, where=f"line {line}, column {column}")

    def peek_start(self) -> int:
        found = _SPACE.match(self.text, self.position)
        return found.end() if found else self.position

    def peek(self) -> _Token:
        start = self.peek_start()
        if start >= len(self.text):
            return _Token("end", "the end of the text", start, start)
        found = _TOKEN.match(self.text, start)
        if found is None or found.lastgroup is None:
            self.fail(f"{self.text[start]!r} begins nothing of a graph", start)
        return _Token(found.lastgroup, found.group(), start, found.end())

    def take(self) -> _Token:
        token = self.peek()
        self.position = token.end
        return token

    def accept(self, *texts: str) -> bool:
        """Take the next token if it is one of these marks or unquoted words."""
        token = self.peek()
        if token.kind in ("mark", "word") and token.text in texts:
            self.position = token.end
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.peek().text!r}")

    def name(self) -> str:
        token = self.peek()
        if token.kind == "word":
            self.position = token.end
            return token.text
        return self.quoted("a name")

    def quoted(self, what: str = "a text in quotes") -> str:
        token = self.peek()
        if token.kind != "text":
            self.fail(f"expected {what}, found {token.text!r}")
        try:
            found = json.loads(token.text)
        except ValueError:
            self.fail(f"{token.text} is no text")
        self.position = token.end
        return str(found)

    def integer(self) -> int:
        token = self.peek()
        if token.kind != "number" or not token.text.lstrip("-").isdigit() or len(token.text) > 4000:
            self.fail(f"expected an integer, found {token.text[:40]!r}")
        self.position = token.end
        return int(token.text)

    def dims(self, close: str) -> tuple[Dim, ...]:
        """Symbolic integers between commas, up to and with the closing mark; the opening one has been taken."""
        found: list[Dim] = []
        depth, start, place = 0, self.position, self.position
        while place < len(self.text) and not (depth == 0 and self.text[place] == close):
            mark = self.text[place]
            if depth == 0 and mark == ",":
                found.append(self._dim(start, place))
                start = place + 1
            depth += (mark in "([") - (mark in ")]")
            place += 1
        if place == len(self.text):
            self.fail(f"{close!r} is missing", self.position)
        if found or self.text[start:place].strip():
            found.append(self._dim(start, place))
        self.position = place + 1
        return tuple(found)

    def _dim(self, start: int, end: int) -> Dim:
        piece = self.text[start:end].strip()
        if not piece:
            self.fail("a dimension is missing", end)
        try:
            return parse_dim(piece)
        except UsageError as error:
            self.fail(error.message, start)


class _Graphs:
    """The grammar."""

    def __init__(self, reader: _Reader, constants: Mapping[str, Array]) -> None:
        self._reader = reader
        self._arrays = constants

    def graph(self, depth: int) -> Graph:
        reader = self._reader
        reader.expect("graph")
        if depth > MAXIMUM_NESTING:
            reader.fail(f"graphs are nested deeper than {MAXIMUM_NESTING}", code=1211)
        name = reader.name()
        reader.expect("{")
        symbols: list[Symbol] = []
        inputs: list[tuple[Value, InputPolicy]] = []
        constants: list[Constant] = []
        nodes: list[Node] = []
        outputs: list[tuple[str, OutputPolicy]] = []
        signed = False
        while not reader.accept("}"):
            if reader.accept("symbol"):
                symbols.append(self._symbol())
            elif reader.accept("input"):
                inputs.append((self._value(), self._input_policy()))
            elif reader.accept("constant"):
                constants.append(self._constant())
            elif reader.accept("output"):
                outputs.append((reader.name(), self._output_policy()))
            elif reader.accept("signature"):
                signed = True
            else:
                nodes.append(self._node(depth))
        policies = GraphSignature(tuple(p for _, p in inputs), tuple(p for _, p in outputs))
        if not signed and policies != GraphSignature((InputPolicy(),) * len(inputs), (OutputPolicy(),) * len(outputs)):
            reader.fail("the graph has policies, so it must say 'signature'")
        return Graph(
            name, tuple(v for v, _ in inputs), tuple(n for n, _ in outputs), tuple(nodes), tuple(constants),
            tuple(symbols), policies if signed else None,
        )  # fmt: skip

    def _symbol(self) -> Symbol:
        reader = self._reader
        measured = reader.accept("measured")
        name = reader.name()
        reader.expect("in")
        lower = reader.integer()
        reader.expect("..")
        upper = reader.integer() if reader.peek().kind == "number" else None
        return Symbol(name, lower, upper, reader.integer() if reader.accept("step") else 1, measured)

    def _value(self) -> Value:
        name = self._reader.name()
        self._reader.expect(":")
        return Value(name, self._type())

    def _type(self) -> ValueType:
        reader = self._reader
        if reader.accept("token"):
            return TokenType()
        if reader.accept("opaque"):
            return OpaqueType(reader.quoted())
        dtype = self._dtype()
        reader.expect("[")
        return TensorType(reader.dims("]"), dtype)

    def _dtype(self) -> DType:
        token = self._reader.peek()
        if token.kind != "word":
            self._reader.fail(f"expected an element type, found {token.text!r}")
        try:
            found = dtype_named(token.text)
        except UsageError as error:
            self._reader.fail(f"{error.message} ({error.hint})")
        self._reader.take()
        return found

    def _input_policy(self) -> InputPolicy:
        reader = self._reader
        access: Any = "donated" if reader.accept("donated") else "mutated" if reader.accept("mutated") else "read"
        mutated_by = reader.integer() if reader.accept("by") else None
        contiguity: Any = "copy"
        if reader.accept("noncontiguous"):
            contiguity = reader.quoted()
            if contiguity not in ("copy", "specialise", "refuse"):
                reader.fail(f"{contiguity!r} is no policy for arrays that are not contiguous")
        return InputPolicy(access, mutated_by, contiguity)

    def _output_policy(self) -> OutputPolicy:
        reader = self._reader
        kind: Any = "alias" if reader.accept("alias") else "view" if reader.accept("view") else "fresh"
        of = reader.integer() if reader.peek().kind == "number" else None
        strides, offset = None, None
        if reader.accept("strides"):
            reader.expect("[")
            strides = reader.dims("]")
        if reader.accept("offset"):
            reader.expect("[")
            found = reader.dims("]")
            if len(found) != 1:
                reader.fail("an offset is one integer")
            (offset,) = found
        return OutputPolicy(kind, of, strides, offset)

    def _constant(self) -> Constant:
        reader = self._reader
        at = reader.peek_start()
        value = self._value()
        if not isinstance(value.type, TensorType) or not all(extent.is_constant for extent in value.type.shape):
            reader.fail("a constant is a tensor of known shape", at)
        shape = tuple(map(int, value.type.shape))
        if any(extent < 0 for extent in shape):
            reader.fail("a constant has no negative extent", at)
        dtype = value.type.dtype
        reader.expect("=")
        if reader.accept("sha256"):
            return self._stored(value.name, reader.quoted(), value.type, at)
        if reader.accept("bytes"):
            digits = reader.quoted()
            try:
                flat: Array = np.frombuffer(bytes.fromhex(digits), dtype.numpy)
            except ValueError as error:
                reader.fail(f"these are not the bytes of {value.type}: {error}", at)
        else:
            flat = self._elements(dtype, at)
        count = 1
        for extent in shape:
            count *= extent
        if flat.size != count:
            reader.fail(f"{value.type} has {count} elements, {flat.size} are given", at)
        array = flat.reshape(shape).copy()
        array.flags.writeable = False
        return Constant(value.name, array)

    def _elements(self, dtype: DType, at: int) -> Array:
        reader = self._reader
        reader.expect("[")
        found: list[bool | int | float] = []
        while not reader.accept("]"):
            if found:
                reader.expect(",")
            entry = self._attribute(0)
            if isinstance(entry, bool) or not isinstance(entry, int | float):
                fits = isinstance(entry, bool) and dtype.kind == "boolean"
            elif dtype.is_integer:
                low, high = integer_range(dtype)
                fits = isinstance(entry, int) and low <= entry <= high
            else:
                fits = dtype.is_floating
            if not fits:
                reader.fail(f"{entry!r} is no element of type {dtype}", at)
            assert isinstance(entry, bool | int | float)
            found.append(entry)
        try:
            if dtype.is_small_integer:
                return np.array(found, np.int8).astype(dtype.numpy)
            return np.array(found, np.float64 if dtype.is_floating else dtype.numpy).astype(dtype.numpy)
        except (OverflowError, ValueError) as error:
            reader.fail(f"elements do not fit {dtype}: {error}", at)

    def _stored(self, name: str, digest: str, kind: TensorType, at: int) -> Constant:
        array = self._arrays.get(digest)
        if array is None:
            array = self._arrays.get(name)
        if array is None:
            self._reader.fail(f"no array is given for constant {name} (sha256 {digest})", at, 1212)
        found = Constant(name, array)
        try:
            same = found.type == kind and found.digest == digest
        except UsageError:
            same = False
        if not same:
            self._reader.fail(f"the array given for constant {name} is not {kind} with sha256 {digest}", at, 1212)
        return found

    def _node(self, depth: int) -> Node:
        reader = self._reader
        results: list[Value] = []
        while not reader.accept("="):
            if results:
                reader.expect(",")
            results.append(self._value())
        operator = reader.name()
        reader.expect("(")
        inputs: list[str] = []
        while not reader.accept(")"):
            if inputs:
                reader.expect(",")
            inputs.append(reader.name())
        attributes: dict[str, Attribute] = {}
        if reader.accept("{"):
            while not reader.accept("}"):
                if attributes:
                    reader.expect(",")
                at = reader.peek_start()
                key = reader.name()
                if key in attributes:
                    reader.fail(f"attribute {key!r} is given twice", at)
                reader.expect(":")
                attributes[key] = self._attribute(0)
        if reader.accept("named"):
            name = reader.name()
        elif results:
            name = results[0].name
        else:
            reader.fail("a node without results must be named")
        location = reader.quoted() if reader.accept("at") else ""
        black_box = reader.quoted() if reader.accept("by") else ""
        subgraphs: list[Graph] = []
        while reader.accept("with"):
            subgraphs.append(self.graph(depth + 1))
        return Node(
            name, operator, tuple(inputs), tuple(results), MappingProxyType(attributes), tuple(subgraphs), location,
            black_box,
        )  # fmt: skip

    def _attribute(self, depth: int) -> Attribute:
        reader = self._reader
        token = reader.peek()
        if token.kind == "text":
            return reader.quoted()
        if token.kind == "number":
            if token.text.lstrip("-").isdigit():
                return reader.integer()
            reader.take()
            return float(token.text)
        if reader.accept("true"):
            return True
        if reader.accept("false"):
            return False
        if reader.accept("<"):
            found = reader.dims(">")
            if len(found) != 1:
                reader.fail("one symbolic integer stands in angle brackets", token.start)
            return found[0]
        if not reader.accept("("):
            return self._dtype()
        if depth >= MAXIMUM_NESTING:
            reader.fail(f"tuples are nested deeper than {MAXIMUM_NESTING}", token.start, 1211)
        entries: list[Attribute] = []
        while not reader.accept(")"):
            if entries:
                reader.expect(",")
                if reader.accept(")"):
                    break
            entries.append(self._attribute(depth + 1))
        return tuple(entries)
