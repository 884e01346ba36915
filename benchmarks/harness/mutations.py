"""Damage done to ONNX models on purpose: to their bytes, and to the fields of their messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto

INTEGERS = (
    -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 4, 7, 13, 64, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1,
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, -1e38, float("inf"), float("-inf"), float("nan"), 0.5)
TEXTS = ("", "x", "y", "\0", "é", "ai.onnx", "ai.onnx.ml", "com.example", "SAME_UPPER", "constant", "a" * 300)
DEEPEST = 12
"""How deep messages are looked for fields."""


def mutated(corpus: Sequence[bytes], random: Random) -> bytes:
    """A model of the corpus with one to four faults, in its bytes or in its fields."""
    model = random.choice(corpus)
    count = random.choice((1, 1, 1, 2, 3, 4))
    if random.random() < 0.25:
        for _ in range(count):
            model = random.choice(_ON_BYTES)(model, random)
        return model
    return in_fields(model, corpus, random, count)


# -- bytes -------------------------------------------------------------------------------------------------------------
def _flipped(model: bytes, random: Random) -> bytes:
    found = bytearray(model)
    for _ in range(random.choice((1, 1, 2, 8))):
        if found:
            found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def _overwritten(model: bytes, random: Random) -> bytes:
    start = random.randrange(len(model) + 1)
    patch = random.choice((b"\xff" * 9 + b"\x01", b"\x00" * 8, random.randbytes(4), b"\xff\xff\xff\x7f", b"\x80"))
    return model[:start] + patch + model[start + len(patch) :]


def _inserted(model: bytes, random: Random) -> bytes:
    start = random.randrange(len(model) + 1)
    return model[:start] + random.randbytes(random.choice((1, 2, 16))) + model[start:]


def _without_part(model: bytes, random: Random) -> bytes:
    start = random.randrange(len(model) + 1)
    return model[:start] + model[start + random.choice((1, 2, 8, 64)) :]


def _truncated(model: bytes, random: Random) -> bytes:
    return model[: random.randrange(len(model) + 1)]


def _doubled(model: bytes, random: Random) -> bytes:
    start, end = sorted(random.randrange(len(model) + 1) for _ in range(2))
    return model[:end] + model[start:end] + model[end:]


_ON_BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flipped, _flipped, _overwritten, _inserted, _without_part, _truncated, _doubled,
)  # fmt: skip


# -- fields ------------------------------------------------------------------------------------------------------------
def in_fields(model: bytes, corpus: Sequence[bytes], random: Random, count: int) -> bytes:
    """The model with some fields of its messages changed; values of one model may be put into another."""
    from onnx import ModelProto

    proto = ModelProto.FromString(model)
    for _ in range(count):
        if random.random() < 0.15:
            _transplanted(proto, ModelProto.FromString(random.choice(corpus)), random)
        else:
            messages = _messages(proto)
            # messages deep inside are many, and changes there get furthest
            _field_changed(random.choice(messages), messages, random)
    return proto.SerializeToString()


def _messages(proto: Any) -> list[Any]:
    found: list[Any] = []
    left: list[tuple[Any, int]] = [(proto, 0)]
    while left:
        message, depth = left.pop()
        found.append(message)
        if depth == DEEPEST:
            continue
        for field, value in message.ListFields():
            if field.message_type is not None:
                left.extend((one, depth + 1) for one in (value if field.is_repeated else [value]))
    return found


def _transplanted(proto: ModelProto, other: ModelProto, random: Random) -> None:
    """A node of another model, reading what there is."""
    if not other.graph.node:
        return
    node = proto.graph.node.add()
    node.CopyFrom(random.choice(list(other.graph.node)))
    names = [value.name for value in proto.graph.input] + [name for n in proto.graph.node for name in n.output]
    for place in range(len(node.input)):
        if names:
            node.input[place] = random.choice(names)
    for place in range(len(node.output)):
        node.output[place] = f"transplanted_{random.randrange(100)}"
    if node.output and proto.graph.output:
        random.choice(list(proto.graph.output)).name = node.output[0]


def _field_changed(message: Any, messages: Sequence[Any], random: Random) -> None:
    fields = [field for field, _ in message.ListFields()]
    if not fields or random.random() < 0.1:
        fields = list(message.DESCRIPTOR.fields)
    if not fields:
        return
    field = random.choice(fields)
    try:
        if field.is_repeated:
            _list_changed(getattr(message, field.name), field, messages, random)
        elif field.message_type is not None:
            likes = [one for one in messages if one.DESCRIPTOR is field.message_type]
            if likes and random.random() < 0.6:
                getattr(message, field.name).CopyFrom(_copy(random.choice(likes)))
            else:
                message.ClearField(field.name)
        elif random.random() < 0.1:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, _drawn(field, messages, random))
    except (ValueError, TypeError):
        return  # a value that the field cannot hold


def _copy(message: Any) -> Any:
    """A message of its own: one that is put into itself would never end."""
    found = type(message)()
    found.CopyFrom(message)
    return found


def _list_changed(held: Any, field: Any, messages: Sequence[Any], random: Random) -> None:
    choice = random.random()
    if held and choice < 0.25:
        del held[random.randrange(len(held))]
    elif held and choice < 0.3:
        del held[:]
    elif field.message_type is not None:
        likes = [one for one in messages if one.DESCRIPTOR is field.message_type]
        if likes:
            held.append(_copy(random.choice(likes)))
    elif held and choice < 0.8:
        held[random.randrange(len(held))] = _drawn(field, messages, random)
    else:
        held.append(_drawn(field, messages, random))


def _drawn(field: Any, messages: Sequence[Any], random: Random) -> Any:
    """A value for a field that holds no message."""
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        others = [one.name for one in messages if "name" in one.DESCRIPTOR.fields_by_name]
        words = [*others[:50], *TEXTS] if random.random() < 0.8 else list(TEXTS)
        text = random.choice(words)
        return text.encode() if field.type == field.TYPE_BYTES else text
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return random.choice(FLOATS)
    if kind == field.CPPTYPE_ENUM:
        return random.choice([value.number for value in field.enum_type.values])
    number = random.choice(INTEGERS) if random.random() < 0.7 else random.randrange(-6, 30)
    wide = 64 if kind in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64) else 32
    signed = kind in (field.CPPTYPE_INT64, field.CPPTYPE_INT32)
    low = -(1 << (wide - 1)) if signed else 0
    return low + (number - low) % (1 << wide)
