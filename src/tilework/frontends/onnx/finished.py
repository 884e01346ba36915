"""The graph of an import that is through: its outputs are the tensors of the model's, under the model's names."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.frontends.onnx.containers import Held, Structure, flattened, structure
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.operand import Operand
from tilework.frontends.onnx.rename import rename_values
from tilework.frontends.onnx.words import PROVIDER, presented
from tilework.graph.graph import Graph, Value
from tilework.graph.types import OpaqueType


def finished(emitter: Emitter, outputs: Sequence[tuple[str, Held]]) -> tuple[Graph, tuple[Structure, ...]]:
    """The graph of a model's outputs by name, and what each of them is beside its tensors."""
    names: list[str] = []
    values: list[Value] = []
    for name, held in outputs:
        emitter.location = f"output {name}"
        parts = [presented(emitter, operand) for operand in flattened(held)]
        alone = isinstance(held, Operand)
        names += [name] if alone else [emitter.builder.fresh(f"{name}.{place}") for place in range(len(parts))]
        values += parts
    return _named(emitter, names, values), tuple(structure(held) for _, held in outputs)


def _named(emitter: Emitter, names: Sequence[str], values: Sequence[Value]) -> Graph:
    """The graph whose outputs have the model's names: copies where one value has two, or is an input."""
    builder = emitter.builder
    fixed = {value.name for value in builder.build([]).inputs}
    fixed.update(value.name for name, value in zip(names, values, strict=True) if value.name == name)
    renamed: dict[str, str] = {}
    outputs: list[Value] = []
    for name, value in zip(names, values, strict=True):
        chosen = value
        if value.name != name and (value.name in fixed or renamed.get(value.name, name) != name):
            chosen = _copied(emitter, value, f"output {name}")
        if chosen.name != name:
            renamed[chosen.name] = name
        outputs.append(chosen)
    graph = builder.build(outputs)
    own = set(emitter.measures)
    symbols = tuple(s for s in emitter.symbols.symbols.values() if not s.measured or s.name in own)
    return rename_values(graph.replace(symbols=symbols), renamed)


def _copied(emitter: Emitter, value: Value, location: str) -> Value:
    if isinstance(value.type, OpaqueType):
        (found,) = emitter.builder.black_box("Identity", PROVIDER, value, results=[value.type], location=location)
        return found
    return emitter.builder.apply_one("reshape", value, shape=value.tensor.shape, location=location)
