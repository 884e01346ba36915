"""Models whose inputs or outputs are sequences or optionals, compiled for what each call is given.

A call's arguments are taken apart into tensors; the model gets these as inputs, and nodes that put them together again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dtypes import dtype_of
from tilework.errors import CallError, FrontendError, UsageError
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.black_boxes import FUNCTIONS
from tilework.frontends.onnx.containers import Structure
from tilework.frontends.onnx.importer import import_parts
from tilework.frontends.onnx.tensors import ELEMENT_TYPES, element_type_called
from tilework.graph.graph import Array
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.forks import in_child

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto

KEPT = 16
"""Compilations that are kept for each model, the least recently used dropped."""


def takes_parts(model: ModelProto) -> bool:
    """Whether an input or output of a model is declared as a sequence or an optional."""
    declared = (*model.graph.input, *model.graph.output)
    return any(value.type.WhichOneof("value") in ("sequence_type", "optional_type") for value in declared)


@dataclass(frozen=True)
class _Variant:
    executable: Executable
    outputs: tuple[Structure, ...]


class PerStructure:
    """Called like an `Executable`: sequences are lists of arrays, an empty optional is None.

    Compiles at the first call with new lengths, shapes, or values on which the graph depends. Threads: any may call;
    compilations are one at a time.
    """

    def __init__(self, model: ModelProto, options: CompileOptions, context: Context | None) -> None:
        self._model = model
        self._options = options
        self._context = context
        self._lock = threading.Lock()
        constants = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [value for value in model.graph.input if value.name not in constants]
        self._deciding: OrderedDict[object, tuple[str, ...]] = OrderedDict()
        self._found: OrderedDict[object, _Variant] = OrderedDict()
        in_child(self._after_fork)

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """The outputs for some inputs.

        Raises:
            CallError: 1701 for a wrong number of arguments, 1709 for one that is no value of its input's type.
            FrontendError, CodegenError, RunError: as `tilework.compile` and an `Executable`.
        """
        names = [value.name for value in self._inputs]
        ordered = [*arguments, *(named[name] for name in names[len(arguments) :] if name in named)]
        if len(ordered) != len(names) or len(arguments) + len(named) != len(names):
            raise CallError(1701, f"the inputs are {', '.join(names)}; {len(arguments) + len(named)} are given")
        parts = _Parts(self._model)
        for value, argument in zip(self._inputs, ordered, strict=True):
            parts.add(value, argument)
        with self._lock:
            found = self._variant(parts)
        results = iter(found.executable(*parts.arrays.values()))
        return tuple(_joined(kind, results) for kind in found.outputs)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def _variant(self, parts: _Parts) -> _Variant:
        shapes = parts.key()
        deciding = self._deciding.get(shapes, ())
        key = (shapes, tuple(parts.arrays[name].tobytes() for name in deciding))
        found = self._found.get(key)
        if found is None:
            values = {name: parts.arrays[name] for name in deciding}
            found = self._compiled(parts, values)
            self._deciding[shapes] = tuple(values)
            key = (shapes, tuple(array.tobytes() for array in values.values()))
            self._found[key] = found
        for kept, used in ((self._found, key), (self._deciding, shapes)):
            kept.move_to_end(used)
            while len(kept) > KEPT:
                kept.popitem(last=False)
        return found

    def _compiled(self, parts: _Parts, values: dict[str, Array]) -> _Variant:
        """Compile for some parts; `values` gains what inputs hold that decide sizes or the course of the model."""
        model = parts.model()
        while True:
            try:
                graph, outputs = import_parts(model, values)
                break
            except FrontendError as error:
                unknown = [name for name in error.decided_by if name in parts.arrays and name not in values]
                if not unknown:
                    raise
                values.update((name, parts.arrays[name]) for name in unknown)
        return _Variant(compile_graph(graph, self._options, self._context, FUNCTIONS), outputs)


class _Parts:
    """The tensors of a call's arguments by name, and how a model puts them together."""

    def __init__(self, model: ModelProto) -> None:
        self.arrays: dict[str, Array] = {}
        self._model = model
        self._nodes: list[NodeProto] = []
        graph = model.graph
        self._used = {value.name for value in (*graph.input, *graph.initializer)}
        self._used.update(name for node in graph.node for name in (*node.input, *node.output))

    def key(self) -> object:
        """What one compilation serves: names (in which structures show), types and shapes."""
        nodes = tuple(node.SerializeToString() for node in self._nodes)
        return nodes, tuple((name, array.dtype.name, array.shape) for name, array in self.arrays.items())

    def add(self, value: ValueInfoProto, argument: Any) -> None:
        """Take an input's argument apart."""
        if value.type.WhichOneof("value") == "tensor_type":
            self.arrays[value.name] = _array(value.name, argument, value.type.tensor_type)
        else:
            self._held(value.name, value.name, value.type, argument)

    def _held(self, result: str, called: str, kind: TypeProto, argument: Any) -> None:
        """Make `result` of the parts of an argument."""
        from onnx import helper

        which = kind.WhichOneof("value")
        if which == "sequence_type":
            if not isinstance(argument, (list, tuple)):
                text = f"it is a {type(argument).__name__}, a sequence is a list of arrays"
                raise CallError(1709, text, where=called)
            elements, inner = cast("Sequence[Any]", argument), kind.sequence_type.elem_type.tensor_type
            names = [self._fresh(called) for _ in elements]
            for name, element in zip(names, elements, strict=True):
                self.arrays[name] = _array(called, element, inner)
            number = inner.elem_type
            if names:
                self._nodes.append(helper.make_node("SequenceConstruct", names, [result]))
            else:
                self._nodes.append(helper.make_node("SequenceEmpty", [], [result], dtype=number))
        elif which == "optional_type":
            inner = kind.optional_type.elem_type
            if argument is None:
                self._nodes.append(helper.make_node("Optional", [], [result], type=inner))
                return
            content = self._fresh(called)
            if inner.WhichOneof("value") == "tensor_type":
                self.arrays[content] = _array(called, argument, inner.tensor_type)
            else:
                self._held(content, called, inner, argument)
            self._nodes.append(helper.make_node("Optional", [content], [result]))
        else:
            raise CallError(1709, f"inputs of this type ({which}) are not supported", where=called)

    def _fresh(self, stem: str) -> str:
        count = 0
        while f"{stem}.{count}" in self._used:
            count += 1
        self._used.add(f"{stem}.{count}")
        return f"{stem}.{count}"

    def model(self) -> ModelProto:
        """The model with the tensors as inputs, of just these shapes."""
        from onnx import ModelProto as Proto
        from onnx import helper

        found = Proto()
        found.CopyFrom(self._model)
        graph = found.graph
        constants = {tensor.name for tensor in graph.initializer}
        kept = [value for value in graph.input if value.name in constants]
        numbers = {dtype: number for number, dtype in ELEMENT_TYPES.items()}
        inputs = [
            helper.make_tensor_value_info(name, numbers[dtype_of(array)], array.shape)
            for name, array in self.arrays.items()
        ]
        nodes = [*self._nodes, *graph.node]
        del graph.input[:], graph.node[:]
        graph.input.extend([*inputs, *kept])
        graph.node.extend(nodes)
        return found


def _array(called: str, argument: Any, declared: TypeProto.Tensor) -> Array:
    """An argument as an array, of the declared element type and extents."""
    try:
        found = np.asarray(argument)
        dtype = dtype_of(found)
    except (TypeError, ValueError, UsageError) as error:
        raise CallError(1709, f"it is no array of numbers: {error}", where=called) from None
    if ELEMENT_TYPES.get(declared.elem_type) != dtype:
        wanted = element_type_called(declared.elem_type)
        raise CallError(1702, f"its elements are {dtype}, they must be {wanted}", where=called)
    if declared.HasField("shape"):
        extents = declared.shape.dim
        if len(extents) != found.ndim:
            raise CallError(1704, f"it has {found.ndim} dimensions, not {len(extents)}", where=called)
        for place, (extent, own) in enumerate(zip(extents, found.shape, strict=True)):
            if extent.HasField("dim_value") and extent.dim_value >= 0 and extent.dim_value != own:
                text = f"dimension {place} is {own}, it must be {extent.dim_value}"
                raise CallError(1705, text, where=called)
    return found


def _joined(kind: Structure, tensors: Iterator[Any]) -> Any:
    """An output from its tensors."""
    if kind.kind == "tensor":
        return next(tensors)
    if kind.kind == "sequence":
        return [next(tensors) for _ in kind.parts]
    return _joined(kind.parts[0], tensors) if kind.parts else None
