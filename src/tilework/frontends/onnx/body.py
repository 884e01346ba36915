"""Importing the nodes of one graph and of subgraphs decided at import; faults are collected node by node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from tilework.dims import Dim, dim
from tilework.errors import Fault, TileworkError, VerificationError
from tilework.frontends.onnx.branches import run_if
from tilework.frontends.onnx.carried import MOST_REWRITINGS, carried_into_branches, needed
from tilework.frontends.onnx.check import node_called, node_faults, opsets, sorted_nodes
from tilework.frontends.onnx.containers import Held, Structure, all_rebuilt, flattened, structure, type_name
from tilework.frontends.onnx.control import Refused, Skipped, WithoutMeaning, run_loop, run_scan
from tilework.frontends.onnx.converters import Converter, converters, qualified
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.finished import finished
from tilework.frontends.onnx.functions import Body, body_of, model_functions
from tilework.frontends.onnx.moved_strings import ReturnedStrings, moved, moves_strings, refuse_given_strings
from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.frontends.onnx.operand import Operand, from_array, from_value
from tilework.frontends.onnx.outputs import output_faults
from tilework.frontends.onnx.random_keys import add_fresh_key, draws_without_seed
from tilework.frontends.onnx.schema import STANDARD_DOMAINS, schema_of
from tilework.frontends.onnx.sequences import SEQUENCE_OPERATORS, run_on_sequences, unrolled_loop
from tilework.frontends.onnx.shape_arithmetic import evaluate
from tilework.frontends.onnx.signature import CONTROL_FLOW, DeclaredInput
from tilework.frontends.onnx.source import DEEPEST, LoadedModel
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.tensors import STRING_ELEMENTS, to_array
from tilework.frontends.onnx.words import of_strings, outside, stored_strings, takes_strings
from tilework.graph.graph import Array, Graph, Value
from tilework.graph.limits import beyond_limits
from tilework.graph.types import OpaqueType, TensorType
from tilework.ops.builder import GraphBuilder

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


DECIDED_BY_VALUES = frozenset({1116, 1120, 1126})
"""Codes of faults that there may be none of once the values of operands are known."""


DOES_NOT_FIT = frozenset({1108, 1119})
"""Codes of faults that a branch may have because it is meant for other sizes, and never runs for these."""


class Missing(Enum):
    """Why a name has no value: its node could not be imported (its readers are skipped silently), or an optional input
    of a function was left out.
    """

    FAILED = "failed"
    ABSENT = "absent"


Scope = dict[str, "Held | Missing"]


class BodyImporter:
    """One import of a model; `faults` and `decided_by` hold what went wrong, after `whole`."""

    def __init__(self, model: LoadedModel, symbols: SymbolTable) -> None:
        self.faults: list[Fault] = []
        self.structures: tuple[Structure, ...] = ()
        """What each output is beside its tensors; the graph's outputs are all their tensors in order."""
        self.decided_by: list[str] = []
        """Inputs of the model whose values would decide what faults say is not known."""
        self._model = model
        self._symbols = symbols
        self._functions = model_functions(model.proto)
        self._depth = 0
        self._rewritten = 0
        self._builder = GraphBuilder(model.proto.graph.name or "model")
        self._emitter = Emitter(self._builder, symbols)

    def whole(self, inputs: Sequence[DeclaredInput], shapes_hold: bool, values: Mapping[str, Array]) -> Graph:
        """The model's graph; meaningless where `faults` is not empty afterwards.

        `shapes_hold`: constant extents follow from the model alone, so that declared ones may be held against them.
        `values`: what some inputs hold.
        """
        proto = self._model.proto.graph
        scope: Scope = {}
        for declared in inputs:
            shape: list[Dim] = []
            for extent in declared.shape:
                shape.append(dim(extent) if isinstance(extent, int) else self._symbols.free(extent.key, extent.stem))
            if declared.opaque:
                value = self._builder.add_input(declared.name, OpaqueType(declared.opaque))
                scope[declared.name] = outside(declared.name, value, tuple(shape))
                continue
            value = self._builder.input(declared.name, declared.dtype, *shape)
            known = values.get(declared.name)
            if known is None:
                scope[declared.name] = from_value(declared.name, value)
            else:
                scope[declared.name] = from_array(declared.name, known)
        self._constants(proto, scope, self._model.overridden)
        if draws_without_seed(self._model.proto):
            add_fresh_key(self._emitter)
        self._run(proto.node, scope, opsets(self._model.proto))
        for value in proto.output:
            held = scope.get(value.name, Missing.FAILED)
            if not isinstance(held, Missing):
                self.faults.extend(output_faults(value, held, shapes_hold))
        if self.faults:
            return self._builder.build([])
        outputs: list[tuple[str, Held]] = []
        for value in proto.output:
            held = scope[value.name]
            assert not isinstance(held, Missing)
            outputs.append((value.name, held))
        graph, self.structures = finished(self._emitter, outputs)
        return graph

    def _constants(self, proto: GraphProto, scope: Scope, overridden: Collection[str] = ()) -> None:
        for tensor in proto.initializer:
            if tensor.name in overridden:
                continue
            try:
                if tensor.data_type == STRING_ELEMENTS:
                    scope[tensor.name] = stored_strings(tensor)
                    continue
                scope[tensor.name] = from_array(tensor.name, to_array(tensor, self._model.folder))
            except NodeFault as fault:
                self.faults.append(fault.at(f"initialiser {tensor.name}"))
                scope[tensor.name] = Missing.FAILED

    def _run(self, nodes: Sequence[NodeProto], scope: Scope, versions: Mapping[str, int]) -> None:
        ordered = sorted_nodes(nodes)
        if isinstance(ordered, Fault):
            self.faults.append(ordered)
            return
        for position, node in enumerate(ordered):
            where = node_called(node, position)
            try:
                self._node(node, scope, where, versions)
            except NodeFault as fault:
                self._failed(node, scope, [fault.at(where)])
                self._not_known(fault, node, scope)
            except VerificationError as error:
                self._failed(node, scope, [Fault(1119, where, fault.message) for fault in error.faults])
            except TileworkError as error:
                self._failed(node, scope, [Fault(1119, where, error.message)])
            except (MemoryError, OverflowError) as error:  # what numpy and Python say to sizes that no machine has
                self._failed(node, scope, [Fault(1124, where, f"a size or a number in it is too large: {error}")])

    def _not_known(self, fault: NodeFault, node: NodeProto, scope: Scope) -> None:
        """Remember the inputs whose values would decide what a fault says is known only when the model runs."""
        if fault.code not in DECIDED_BY_VALUES:
            return
        unknown = fault.unknown or [found for name in node.input if isinstance(found := scope.get(name), Operand)]
        values = [operand.value for operand in unknown if operand.value is not None]
        for name in self._emitter.inputs_behind(values):
            if name not in self.decided_by:
                self.decided_by.append(name)

    def _failed(self, node: NodeProto, scope: Scope, faults: Sequence[Fault] = ()) -> None:
        self.faults.extend(faults)
        scope.update((name, Missing.FAILED) for name in node.output)

    # -- one node ------------------------------------------------------------------------------------------------------
    def _node(self, proto: NodeProto, scope: Scope, where: str, versions: Mapping[str, int]) -> None:
        held: list[Held | None] = []
        for name in proto.input:
            found = scope.get(name) if name else Missing.ABSENT
            if found is None:
                raise NodeFault(1113, f"it reads {name!r}, which nothing defines")
            if found is Missing.FAILED:
                self._failed(proto, scope)
                return
            held.append(None if isinstance(found, Missing) else found)
        if not self._depth:
            self._emitter.location = where
        operands = [operand if isinstance(operand, Operand) else None for operand in held]
        types = [None if operand is None else (operand.dtype, operand.shape) for operand in operands]
        called = qualified(proto.domain, proto.op_type)
        converter = converters().get(called)
        known = converter is not None or called in CONTROL_FLOW or called in SEQUENCE_OPERATORS
        body = body_of(proto, self._functions, versions, types, known)
        if body is not None:
            self._function(body, proto, held, scope)
            return
        if not known:
            raise NodeFault(1107, f"{proto.op_type} is not supported")
        version = versions.get("" if proto.domain in STANDARD_DOMAINS else proto.domain, 0)
        node = OnnxNode(proto, version, operands, self._emitter, self._model.folder)
        self._check_types(proto, held, versions)
        if called in CONTROL_FLOW:
            results = self._control(node, held, scope, versions)
        elif converter is None or (called == "Identity" and operands[0] is None):
            results = self._on_sequences(node, held, scope, versions)
        else:
            results = self._converted(node, converter)
        if results is None:
            return
        for place, name in enumerate(proto.output):
            if not name:
                continue
            result = results[place] if place < len(results) else None
            if result is None:
                raise NodeFault(1123, f"its output {place} ({name!r}) is not supported")
            self._defined(name, result, scope)

    def _converted(self, node: OnnxNode, converter: Converter) -> Sequence[Held | None]:
        if takes_strings(node) and node.proto.domain in STANDARD_DOMAINS:
            own = converters().get(of_strings(node.operator))
            if own is not None:
                return self._results(own(node))
        if node.proto.domain in STANDARD_DOMAINS and moves_strings(node):
            return moved(node, lambda numbers: self._converted(numbers, converter))
        results = evaluate(node) if node.proto.domain in STANDARD_DOMAINS else None
        if results is not None:
            return results
        return self._results(converter(node))

    @staticmethod
    def _results(found: Result | tuple[Result | None, ...]) -> Sequence[Held | None]:
        parts = found if isinstance(found, tuple) else (found,)
        return [from_value("", part) if isinstance(part, Value) else part for part in parts]

    def _on_sequences(
        self, node: OnnxNode, held: Sequence[Held | None], scope: Scope, versions: Mapping[str, int]
    ) -> Sequence[Held] | None:
        """The results of a node of sequences or optionals; None where a subgraph has faults."""

        def bodies(graph: GraphProto, given: Sequence[Held]) -> list[Held]:
            return self._subgraph(graph, given, self._emitter, scope, versions)

        try:
            return (unrolled_loop if node.operator == "Loop" else run_on_sequences)(node, held, bodies)
        except Skipped:
            self._failed(node.proto, scope)
            return None

    def _function(self, body: Body, proto: NodeProto, operands: Sequence[Held | None], scope: Scope) -> None:
        """Import a function's body in a node's place; its nodes keep the location of the call."""
        if self._depth >= DEEPEST:
            raise NodeFault(1104, f"functions call each other more than {DEEPEST} deep")
        faults = [fault for place, node in enumerate(body.nodes) for fault in node_faults(node, place, body.versions)]
        if faults:
            self._failed(proto, scope, faults)
            return
        inner: Scope = dict.fromkeys(body.inputs, Missing.ABSENT)
        for name, operand in zip(body.inputs, operands, strict=False):
            inner[name] = Missing.ABSENT if operand is None else operand
        self._depth += 1
        try:
            self._run(body.nodes, inner, body.versions)
        finally:
            self._depth -= 1
        for name, result in zip(proto.output, body.outputs, strict=False):
            found = inner.get(result)
            if not name:
                continue
            if found is None or found is Missing.ABSENT:
                raise NodeFault(1123, f"its output {name!r} is not defined by its function")
            scope[name] = found

    @staticmethod
    def _check_types(proto: NodeProto, held: Sequence[Held | None], versions: Mapping[str, int]) -> None:
        """The types that the operator's schema allows; operands of one type variable must agree."""
        schema = schema_of(proto, versions)
        if schema is None:
            return
        bound: dict[str, tuple[str, Held]] = {}
        parameters = schema.parameters
        for place, operand in enumerate(held):
            spelled = None if operand is None else type_name(operand)
            if operand is None or spelled is None or not parameters:
                continue
            parameter = parameters[min(place, len(parameters) - 1)]
            if spelled not in parameter.types:
                raise NodeFault(1119, f"input {place} ({operand.name!r}) is {operand}, a type it does not take")
            if not parameter.variable:
                continue
            kind, first = bound.setdefault(parameter.variable, (spelled, operand))
            if kind != spelled:
                text = f"inputs {first.name!r} ({first}) and {operand.name!r} ({operand}) differ in type"
                raise NodeFault(1119, text)

    def _defined(self, name: str, result: Held, scope: Scope) -> None:
        for part in flattened(result):
            reason = beyond_limits(TensorType(part.shape, part.dtype), self._symbols.bounds)
            if reason is not None:
                raise NodeFault(1124, f"result {name!r}: {reason}")
        if not result.name:
            if isinstance(result, Operand):
                result.name = name
            else:
                result = replace(result, name=name)
        scope[name] = result

    # -- subgraphs -----------------------------------------------------------------------------------------------------
    def _control(
        self, node: OnnxNode, held: Sequence[Held | None], scope: Scope, versions: Mapping[str, int]
    ) -> Sequence[Held] | None:
        """Control flow: what is decided already is imported in the node's place, the rest runs as subgraphs.

        Returns the results; None where the outputs are defined already, or a subgraph has faults.
        """
        if node.operator == "If" and self._decided_branch(node, scope, versions):
            return None
        if node.operator == "Loop" and not all(operand is None or isinstance(operand, Operand) for operand in held):
            return self._on_sequences(node, held, scope, versions)
        if node.operator != "If":
            refuse_given_strings(node)
        kinds: list[list[Structure]] = []
        texts, pool = set[int](), ReturnedStrings()

        def run(graph: GraphProto, given: Sequence[Operand], emitter: Emitter) -> list[Operand]:
            before = len(self.faults)
            try:
                found = self._subgraph(graph, given, emitter, scope, versions)
            except Skipped:
                faults = self.faults[before:]
                wide = node.operator == "If" and not self._symbols.has_free
                of_sizes = DOES_NOT_FIT | {1120, 1121} if wide else DOES_NOT_FIT
                if node.operator == "Scan" or any(fault.code not in of_sizes for fault in faults):
                    raise
                del self.faults[before:]
                raise WithoutMeaning(faults) from None
            for place, one in enumerate(found):
                if isinstance(one, Operand) and one.words is not None:
                    texts.add(place - (node.operator == "Loop"))  # its body returns its condition first
                    found[place] = pool.placed(emitter, one, graph.name)
            kinds.append([structure(one) for one in found])
            if node.operator == "If" and len(kinds[0]) == len(found) and kinds[0] != kinds[-1]:
                listed = " and ".join(", ".join(map(str, kind)) for kind in kinds)
                raise NodeFault(1120, f"its branches return {listed}", [node.operand(0)])
            return [part for one in found for part in flattened(one)]

        before = len(self.faults)
        try:
            results = {"If": run_if, "Loop": run_loop, "Scan": run_scan}[node.operator](node, run)
        except Skipped:
            if node.operator == "Loop" and all(fault.code in DECIDED_BY_VALUES for fault in self.faults[before:]):
                del self.faults[before:]  # what is wrong may be known in each trip
                return self._on_sequences(node, held, scope, versions)
            self._failed(node.proto, scope)
            return None
        except Refused as reason:
            self._failed(node.proto, scope, reason.faults)
            return None
        except NodeFault as fault:
            if node.operator != "Loop" or fault.code not in DECIDED_BY_VALUES:
                raise
            try:
                return self._on_sequences(node, held, scope, versions)
            except NodeFault as other:
                raise NodeFault(fault.code, fault.message, other.unknown or fault.unknown) from None
        found: list[Held] = list(results)
        if node.operator == "If":
            found = all_rebuilt(kinds[0], results)
        if len(found) != len(node.outputs):
            raise NodeFault(1117, f"it has {len(node.outputs)} outputs, its subgraphs return {len(found)}")
        return [
            pool.picked(self._emitter, one) if place in texts and isinstance(one, Operand) else one
            for place, one in enumerate(found)
        ]

    def _subgraph(
        self, graph: GraphProto, given: Sequence[Held], emitter: Emitter, scope: Scope, versions: Mapping[str, int]
    ) -> list[Held]:
        """Import a subgraph with an emitter of its own; raises `Skipped` where an output has faults."""
        before = len(self.faults)
        try:
            return self._subgraph_as_it_is(graph, given, emitter, scope, versions)
        except Skipped:
            carried = carried_into_branches(graph, self.faults[before:])
            if carried is None or self._rewritten >= MOST_REWRITINGS:
                raise
            self._rewritten += 1
            faults, decided_by = self.faults[before:], list(self.decided_by)
            del self.faults[before:]
            try:
                return self._subgraph(carried, given, emitter, scope, versions)
            except Skipped:
                self.faults[before:], self.decided_by = faults, decided_by
                raise

    def _subgraph_as_it_is(
        self, graph: GraphProto, given: Sequence[Held], emitter: Emitter, scope: Scope, versions: Mapping[str, int]
    ) -> list[Held]:
        inner: Scope = dict(scope)
        for value, operand in zip(graph.input, given, strict=True):
            inner[value.name] = operand
        around, self._emitter = self._emitter, emitter
        try:
            self._constants(graph, inner)
            self._run(needed(graph), inner, versions)  # the rest may ask for sizes that no call of it has
        finally:
            self._emitter = around
        found: list[Held] = []
        for value in graph.output:
            result = inner.get(value.name, Missing.FAILED)
            if isinstance(result, Missing):
                raise Skipped
            found.append(result)
        return found

    def _decided_branch(self, node: OnnxNode, scope: Scope, versions: Mapping[str, int]) -> bool:
        """Put the branch of an `If` whose condition is known in the node's place; whether it is known."""
        operand = node.operand(0)
        known = operand.known()
        condition: Dim | None = known.reshape(-1)[0] if known is not None and known.size == 1 else None
        if condition is None or not condition.is_constant:
            return False
        branch = node.graph("then_branch" if condition.constant else "else_branch")
        if len(branch.output) != len(node.outputs):
            raise NodeFault(1117, f"it has {len(node.outputs)} outputs, its branch has {len(branch.output)}")
        inner: Scope = dict(scope)
        self._constants(branch, inner)
        self._run(needed(branch), inner, versions)
        for name, value in zip(node.outputs, branch.output, strict=True):
            scope[name] = inner.get(value.name, Missing.FAILED)
        return True
