"""The rules of a graph's form, independent of what operators mean (for types see `ops.verify`)."""

from __future__ import annotations

import difflib
import keyword
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

from tilework.dims import Bound, Dim, symbol_bounds
from tilework.dtypes import DType, dtype_of
from tilework.errors import Fault, UsageError, VerificationError
from tilework.graph.graph import (
    MAXIMUM_NESTING,
    Attribute,
    Constant,
    Graph,
    Node,
    Value,
    captured,
    definition_names,
    nesting,
    node_location,
)
from tilework.graph.limits import beyond_limits
from tilework.graph.types import TensorType, TokenType


def verify(graph: Graph) -> None:
    """Raise `VerificationError` with every fault of form (codes 1203 to 1213), if there is one."""
    faults = structure_faults(graph)
    if faults:
        raise VerificationError(f"graph {graph.name}", faults)


def structure_faults(graph: Graph) -> list[Fault]:
    """Every fault of form, subgraphs included."""
    if nesting(graph) > MAXIMUM_NESTING:
        text = f"subgraphs are nested {nesting(graph)} deep, at most {MAXIMUM_NESTING} are allowed"
        return [Fault(1211, f"graph {graph.name}", text)]
    return list(_Scope(graph, frozenset(), frozenset(), frozenset(), {}, None).faults())


class _Scope:
    """One graph, with what it sees of the graphs around it: values, values defined too late, tokens, symbols."""

    def __init__(
        self,
        graph: Graph,
        visible: frozenset[str],
        later: frozenset[str],
        tokens: frozenset[str],
        symbols: Mapping[str, tuple[Bound, Bound]],
        inside: str | None,
    ) -> None:
        self.graph = graph
        self.visible = visible
        self.later = later
        self.inside = inside
        self.where = f"graph {graph.name}" if inside is None else f"{inside} > subgraph {graph.name}"
        self.outer_tokens = tokens
        self.outer_symbols = symbols
        self.symbols = {**symbols, **symbol_bounds(graph.symbols)}
        self.defined = frozenset(definition_names(graph))

    def faults(self) -> Iterator[Fault]:
        yield from self._symbols()
        yield from self._names()
        yield from self._types()
        yield from self._order()
        yield from self._tokens()
        yield from self._signature()

    # -- names and symbols ---------------------------------------------------------------------------------------------
    def _symbols(self) -> Iterator[Fault]:
        counts = Counter(symbol.name for symbol in self.graph.symbols)
        for name, count in counts.items():
            if count > 1:
                yield Fault(1208, self.where, f"symbol {name} is declared {count} times")
            if name in self.outer_symbols:
                yield Fault(1208, self.where, f"symbol {name} is declared by a graph around this one already")
            if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
                yield Fault(1208, self.where, f"symbol {name!r} is no identifier")
        for symbol in self.graph.symbols:
            if symbol.lower < 0 or (symbol.upper is not None and symbol.upper < symbol.lower) or symbol.multiple < 1:
                yield Fault(1208, self.where, f"symbol {symbol} has impossible bounds")

    def _names(self) -> Iterator[Fault]:
        graph = self.graph
        defined = Counter(definition_names(graph))
        for name, count in defined.items():
            if not name:
                yield Fault(1203, self.where, "a value has no name")
            elif count > 1:
                yield Fault(1203, self.where, f"value {name!r} is defined {count} times")
            if name in self.visible:
                yield Fault(1203, self.where, f"value {name!r} hides one of a graph around this one")
        for name, count in Counter(node.name for node in graph.nodes).items():
            if name and count > 1:
                yield Fault(1203, self.where, f"{count} nodes are named {name!r}")
        for place, node in enumerate(graph.nodes):
            where = self._at(node)
            if not node.name:
                yield Fault(1210, where, f"node {place} has no name")
            if not node.operator:
                yield Fault(1210, where, "it names no operator")
            if not node.outputs:
                yield Fault(1210, where, "it has no outputs")

    # -- types and attributes ------------------------------------------------------------------------------------------
    def _types(self) -> Iterator[Fault]:
        graph = self.graph
        for value in graph.inputs:
            yield from self._shape(value, f"{self.where}, input {value.name}")
        for constant in graph.constants:
            fault = _constant_fault(constant)
            if fault is not None:
                yield Fault(1212, f"{self.where}, constant {constant.name}", fault)
        for node in graph.nodes:
            where = self._at(node)
            for value in node.outputs:
                yield from self._shape(value, f"{where}, result {value.name}")
            for name, attribute in node.attributes.items():
                yield from self._attribute(attribute, f"{where}, attribute {name}")

    def _shape(self, value: Value, where: str) -> Iterator[Fault]:
        if isinstance(value.type, TensorType):
            for extent in value.type.shape:
                yield from self._dim(extent, where)
                if extent.value is not None and extent.value < 0:
                    yield Fault(1209, where, f"extent {extent} is negative")
            reason = beyond_limits(value.type, self.symbols)
            if reason is not None:
                yield Fault(1213, where, reason)

    def _dim(self, extent: Dim, where: str) -> Iterator[Fault]:
        if extent.loads():
            yield Fault(1209, where, f"{extent} depends on data; declare a measured symbol")
        for name in sorted(extent.names() - self.symbols.keys()):
            near = difflib.get_close_matches(name, self.symbols, 1)
            hint = f" (declared and near: {near[0]})" if near else ""
            yield Fault(1208, where, f"symbol {name} of {extent} is not declared{hint}")

    def _attribute(self, attribute: Attribute, where: str) -> Iterator[Fault]:
        level: list[Attribute] = [attribute]
        depth = 0
        while level:
            below: list[Attribute] = []
            for entry in level:
                if isinstance(entry, tuple):
                    below.extend(entry)
                elif isinstance(entry, Dim):
                    yield from self._dim(entry, where)
                elif not isinstance(entry, (bool, int, float, str, DType)):  # pyright: ignore[reportUnnecessaryIsInstance]
                    yield Fault(1224, where, f"{type(entry).__name__} is no kind of attribute")
            depth += 1
            if depth > MAXIMUM_NESTING and below:
                yield Fault(1211, where, f"tuples are nested deeper than {MAXIMUM_NESTING}")
                return
            level = below

    # -- order and reach -----------------------------------------------------------------------------------------------
    def _order(self) -> Iterator[Fault]:
        graph = self.graph
        ready = set(self.visible)
        ready.update(value.name for value in graph.inputs)
        ready.update(constant.name for constant in graph.constants)
        for node in graph.nodes:
            where = self._at(node)
            yield from self._reads(node.inputs, ready, where, node)
            if node.subgraphs:
                later = (self.later | self.defined) - ready
                tokens = self.outer_tokens | {v.name for v in _typed(graph) if isinstance(v.type, TokenType)}
                for subgraph in node.subgraphs:
                    yield from _Scope(subgraph, frozenset(ready), later, tokens, self.symbols, where).faults()
            ready.update(value.name for value in node.outputs)
        yield from self._reads(graph.outputs, ready, f"{self.where}, outputs", None)

    def _reads(self, names: Iterable[str], ready: set[str], where: str, node: Node | None) -> Iterator[Fault]:
        for name in dict.fromkeys(names):
            if name in ready:
                continue
            if name in self.defined or name in self.later:
                cycle = _cycle(self.graph, name, node) if node is not None and name in self.defined else []
                text = f"through the cycle {' -> '.join(cycle)}" if cycle else "before the node that defines it"
                yield Fault(1204, where, f"it reads {name!r} {text}")
                continue
            near = difflib.get_close_matches(name, ready, 3)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            yield Fault(1205, where, f"nothing defines {name!r}{hint}")

    # -- effects -------------------------------------------------------------------------------------------------------
    def _tokens(self) -> Iterator[Fault]:
        uses: Counter[str] = Counter(self.graph.outputs)
        for node in self.graph.nodes:
            uses.update(node.inputs)
            # a node's subgraphs are alternatives or repetitions of one use
            uses.update({name for subgraph in node.subgraphs for name in captured(subgraph)})
        tokens = [value for value in self.graph.inputs if isinstance(value.type, TokenType)]
        tokens += [v for node in self.graph.nodes for v in node.outputs if isinstance(v.type, TokenType)]
        for token in tokens:
            if uses[token.name] != 1:
                text = f"is used {uses[token.name]} times" if uses[token.name] else "is dropped"
                yield Fault(1206, self.where, f"token {token.name!r} {text}; it must go to one node or output")
        for name in self.outer_tokens & uses.keys():
            if uses[name] > 1:
                yield Fault(1206, self.where, f"token {name!r} of a graph around this one is used {uses[name]} times")

    # -- signature -----------------------------------------------------------------------------------------------------
    def _signature(self) -> Iterator[Fault]:
        graph, signature = self.graph, self.graph.signature
        if signature is None:
            return
        where = f"{self.where}, signature"
        if self.inside is not None:
            yield Fault(1207, where, "a subgraph has no signature of its own")
        counts = (
            ("inputs", len(signature.inputs), len(graph.inputs)),
            ("outputs", len(signature.outputs), len(graph.outputs)),
        )
        for what, given, wanted in counts:
            if given != wanted:
                yield Fault(1207, where, f"it has {given} policies for {wanted} {what}")
        types = {value.name: value.type for value in _typed(graph)}
        outputs = [types.get(name) for name in graph.outputs]
        for place, (policy, value) in enumerate(zip(signature.inputs, graph.inputs, strict=False)):
            at = f"{where}, input {place} ({value.name})"
            if policy.access not in ("read", "donated", "mutated"):
                yield Fault(1207, at, f"{policy.access!r} is no access")
            if isinstance(value.type, TokenType) and policy.access != "read":
                yield Fault(1207, at, f"a token cannot be {policy.access}")
            if (policy.access == "mutated") != (policy.mutated_by is not None):
                yield Fault(1207, at, "an input that is mutated, and no other, names the output with its new contents")
            elif policy.mutated_by is not None:
                if not 0 <= policy.mutated_by < len(outputs):
                    yield Fault(1207, at, f"there is no output {policy.mutated_by}")
                elif outputs[policy.mutated_by] not in (None, value.type):
                    text = f"output {policy.mutated_by} is {outputs[policy.mutated_by]}, the input is {value.type}"
                    yield Fault(1207, at, text)
        for place, policy in enumerate(signature.outputs):
            at = f"{where}, output {place}"
            if policy.kind not in ("fresh", "alias", "view"):
                yield Fault(1207, at, f"{policy.kind!r} is no kind of output")
            if (policy.kind == "fresh") == (policy.of is not None):
                yield Fault(1207, at, "an output that is an alias or a view, and no other, names its input")
            elif policy.of is not None and not 0 <= policy.of < len(graph.inputs):
                yield Fault(1207, at, f"there is no input {policy.of}")
            if policy.kind != "view" and (policy.strides is not None or policy.offset is not None):
                yield Fault(1207, at, f"strides and offset belong to a view, not to {policy.kind}")
            found = outputs[place] if place < len(outputs) else None
            if policy.kind == "alias" and policy.of is not None and 0 <= policy.of < len(graph.inputs):
                source = graph.inputs[policy.of]
                if found not in (None, source.type):
                    yield Fault(1207, at, f"it is {found} and the alias of {source.name}: {source.type}")
            rank = found.rank if isinstance(found, TensorType) else None
            if policy.kind == "view" and rank not in (None, len(policy.strides or ())):
                yield Fault(1207, at, f"a view of rank {rank} has that many strides")
            for extent in (*(policy.strides or ()), *(() if policy.offset is None else (policy.offset,))):
                yield from self._dim(extent, at)

    def _at(self, node: Node) -> str:
        place = node_location(node)
        return place if self.inside is None else f"{self.inside} > {place}"


def _typed(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for constant in graph.constants:
        if _constant_fault(constant) is None:
            yield constant.value
    for node in graph.nodes:
        yield from node.outputs


def _constant_fault(constant: Constant) -> str | None:
    try:
        dtype_of(constant.array)
    except UsageError as error:
        return error.message
    return None if constant.array.dtype.isnative else "it is not in native byte order"


def _cycle(graph: Graph, name: str, node: Node) -> list[str]:
    """Values on a way from `name` back through its producers to a result of `node`; empty where there is none."""
    own = {value.name for value in node.outputs}
    makers = {value.name: maker for maker in graph.nodes for value in maker.outputs}
    parents: dict[str, str] = {name: ""}
    queue = deque([name])
    while queue:
        top = queue.popleft()
        if top in own:
            way = [top]
            while parents[way[-1]]:
                way.append(parents[way[-1]])
            return [*way, top]
        maker = makers.get(top)
        for read in () if maker is None else (*maker.inputs, *(n for sub in maker.subgraphs for n in captured(sub))):
            if read not in parents:
                parents[read] = top
                queue.append(read)
    return []
