"""Loads and stores: which instruction an access is, and what keeps it inside its buffer.

Along a vectorised loop an access of lane coefficient 1 is a vector, 0 a scalar, -1 a reversed vector, anything else a
gather or scatter. An index that depends on data is checked when it runs: a bad one reads zeros or writes nothing, and
sets the call's error word.
"""

from __future__ import annotations

from tilework.dims import Dim, Loaded
from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.lowering import conversions
from tilework.lowering.builder import Scope
from tilework.lowering.cells import Cells
from tilework.lowering.indices import Indices, Resolved
from tilework.lowering.lane_patterns import chunks, in_order, offsets_by_lane, spread_mask, without_clamps
from tilework.lowering.registers import Block, Branch, Instruction, Value
from tilework.lowering.state import State, memory_kind, register_kind

INDEX_FAULT = 1801
"""An index that depends on data lies outside its buffer."""
CHECK_FAULT = 1802
"""An access of a checked build lies outside its buffer."""
CLOSEST = 4
"""Steps between lanes up to which loading everything between them costs less than a gather."""


@dataclass(frozen=True)
class Check:
    """`0 <= index < extent` has to hold when the access runs; `positions`: the buffers that the index is read from."""

    index: Dim
    extent: Dim
    positions: tuple[str, ...]


@dataclass(frozen=True)
class AccessFacts:
    """What is known of an access wherever it occurs: its flat index, what to check, and whether it is always inside."""

    buffer: str
    flat: Dim
    checks: tuple[Check, ...]
    inside: bool


class Memory:
    """Loads and stores of the current function."""

    def __init__(self, state: State, indices: Indices, cells: Cells) -> None:
        self.state = state
        self.indices = indices
        self.cells = cells
        self.private: dict[str, tuple[str, int]] = {}
        """Buffers in memory that every lane has its own of: (lane variable, lanes)."""
        self.chunked: set[str] = set()
        """Workspaces that every chunk of a parallel loop has its own of."""
        self._facts: dict[tuple[str, tuple[Dim, ...]], AccessFacts] = {}
        indices.load_element = self.load_index

    # -- facts ---------------------------------------------------------------------------------------------------------
    def facts(self, name: str, index: tuple[Dim, ...]) -> AccessFacts:
        found = self._facts.get((name, index))
        if found is None:
            found = self._facts[name, index] = self._find_facts(name, index)
        return found

    def forget(self, name: str) -> None:
        """Forget what is known of accesses to a buffer whose life ends."""
        for key in [key for key in self._facts if key[0] == name]:
            del self._facts[key]

    def _find_facts(self, name: str, index: tuple[Dim, ...]) -> AccessFacts:
        buffer = self.state.buffers.get(name)
        if buffer is None or len(index) != len(buffer.shape):
            raise CodegenError(
                1605, f"{name}[{', '.join(map(str, index))}] is no element of a buffer", where=self.state.statement
            )
        flat = Dim()
        for i, stride in zip(index, buffer.strides, strict=True):
            flat = flat + i * stride
        if name in self.private:
            lane, width = self.private[name]
            flat = flat * width + lane
        pairs = list(zip(index, buffer.shape, strict=True))
        inside = all(self.state.nonnegative(i) and self.state.nonnegative(extent - 1 - i) for i, extent in pairs)
        checks = [Check(i, extent, tuple(sorted({load.buffer for load in i.loads()}))) for i, extent in pairs]
        return AccessFacts(name, flat, tuple(c for c in checks if c.positions or self.state.checked), inside)

    def check(self, facts: AccessFacts, mask: Value | None) -> tuple[Value | None, Value | None]:
        """Conditions under which the access is inside: a scalar one, and one for each lane. Reports where it is not."""
        if not facts.checks:
            return None, mask
        builder = self.state.builder
        scalars: dict[tuple[str, ...], Value] = {}
        lanes: dict[tuple[str, ...], Value] = {}
        for check in facts.checks:
            at, end = self.indices.value(check.index), self.indices.value(check.extent)
            if isinstance(at.constant, int) and isinstance(end.constant, int) and 0 <= at.constant < end.constant:
                continue
            fine = builder.op("icmp", "i1", at, end, extra="ult")
            found = lanes if fine.lanes else scalars
            all_fine = builder.both(found.get(check.positions), fine)
            assert all_fine is not None
            found[check.positions] = all_fine
        scalar: Value | None = None
        for positions, fine in scalars.items():
            bad = builder.op("xor", "i1", fine, builder.constant("i1", True))
            self.fault(bad if mask is None else builder.op("and", "i1", bad, self.any(mask)), facts.buffer, positions)
            scalar = builder.both(scalar, fine)
        inside = mask
        for positions, fine in lanes.items():
            bad = builder.op("xor", "i1", fine, builder.constant("i1", True))
            bad = bad if mask is None else builder.op("and", "i1", bad, mask)
            self.fault(self.any(bad), facts.buffer, positions)
            inside = builder.both(inside, fine)
        return scalar, inside

    def fault(self, condition: Value, buffer: str, positions: tuple[str, ...]) -> None:
        """Set the call's error word where the condition holds (once for equal conditions in one scope)."""
        state = self.state
        builder = state.builder
        detail = state.fault_detail(buffer, positions)
        key = ("fault", condition, detail)
        if key not in builder.scopes[-1].memo:
            builder.scopes[-1].memo[key] = condition
            word = builder.pure("error_word", "ptr", 0, ())
            code = INDEX_FAULT if positions else CHECK_FAULT
            builder.effect("fault", (condition, word), (code << 32) | detail)

    def any(self, mask: Value) -> Value:
        """Whether a lane of the mask is on."""
        builder = self.state.builder
        if isinstance(mask.constant, tuple):
            return builder.constant("i1", any(mask.constant))
        if mask.constant is not None:
            return builder.constant("i1", mask.constant)
        return builder.pure("any", "i1", 0, (mask,)) if mask.lanes else mask

    # -- addresses -----------------------------------------------------------------------------------------------------
    def address(self, name: str, found: Resolved, shift: int = 0) -> Value:
        """The address of an element, without what varies over the lanes; `shift` elements further.

        `found` comes from `Indices.resolve`, which keeps it: its identity names it.
        """
        builder = self.state.builder
        key = ("address", name, id(found), shift)
        known = builder.known(key)
        return known if known is not None else builder.keep(key, self._address(name, found, shift))

    def _address(self, name: str, found: Resolved, shift: int) -> Value:
        builder = self.state.builder
        size = self.state.buffers[name].dtype.itemsize
        pointer = self.state.base(name)
        if name in self.chunked and self.state.function.chunk is not None:
            chunk = builder.op("sext", "i64", self.state.function.chunk)
            whole = self.indices.value(self.state.workspaces[name].strides[0])
            pointer = builder.pure("offset", "ptr", 0, (pointer, builder.mul(chunk, whole)), size)
        for number, (_, part) in enumerate(self.indices.by_depth(found.terms)):
            if number:
                pointer = builder.pure("row", "ptr", 0, (pointer,))
            pointer = builder.pure("offset", "ptr", 0, (pointer, part), size)
        constant = found.constant + shift
        return builder.pure("offset", "ptr", 0, (pointer, builder.integer(constant)), size) if constant else pointer

    # -- loads ---------------------------------------------------------------------------------------------------------
    def load(self, name: str, index: tuple[Dim, ...], dtype: DType, mask: Value | None) -> Value:
        """An element as a value in its register kind: a scalar, or a vector where the index varies over the lanes."""
        if name in self.cells.layouts:
            return self.cells.read(name, index)
        return conversions.from_memory(self.state.builder, self._load(name, index, dtype, mask), dtype)

    def _load(self, name: str, index: tuple[Dim, ...], dtype: DType, mask: Value | None) -> Value:
        builder = self.state.builder
        facts = self.facts(name, index)
        found = self.indices.resolve(facts.flat)
        fine, mask_checked = self.check(facts, mask)
        kind, size = memory_kind(dtype), dtype.itemsize
        epoch = self.state.function.epochs.get(name, 0)
        lane = self.state.lane
        if not found.varies or lane is None:
            pointer = self.address(name, found)
            if mask is not None and not facts.inside:
                fine = builder.both(fine, self.any(mask))
            pointer = self._or_zeros(fine, pointer)
            depth = self.state.load_depth(name, pointer.depth, safe=facts.inside or fine is not None)
            return builder.pure("load", kind, 0, (pointer,), (size, name, False, epoch), depth)
        width = lane.width
        mask = mask_checked
        if found.lane in (1, -1) and not found.vector:
            pointer = self.address(name, found, 0 if found.lane == 1 else 1 - width)
            if found.lane == -1 and mask is not None:
                mask = self.reverse(mask)
            if mask is None:
                pointer = self._or_zeros(fine, pointer)
                depth = self.state.load_depth(name, pointer.depth, safe=facts.inside or fine is not None)
                value = builder.pure("load", kind, width, (pointer,), (size, name, False, epoch), depth)
            else:
                mask = self._and_scalar(mask, fine, width)
                depth = self.state.load_depth(name, max(pointer.depth, mask.depth), safe=facts.inside)
                value = builder.pure("masked_load", kind, width, (pointer, mask), (size, name, False, epoch), depth)
            return self.reverse(value) if found.lane == -1 else value
        some = mask is not None or fine is not None
        if 2 <= found.lane <= CLOSEST and not found.vector and (not some or 8 * size in self.state.masked_loads):
            there = mask if mask is not None or fine is None else builder.constant("i1", True, width)
            there = self._and_scalar(there, fine, width) if there is not None else None
            return self._strided(name, found, (kind, size, epoch), facts.inside, there)
        if found.vector and mask is None and fine is None:
            near = self._near(name, index, found, (kind, size, epoch), facts.inside)
            if near is not None:
                return near
        return self._gathered(name, found, (fine, mask), (kind, size, epoch), facts.inside)

    def _gathered(
        self, name: str, found: Resolved, conditions: tuple[Value | None, Value | None], extra: tuple[str, int, int],
        inside: bool,
    ) -> Value:  # fmt: skip
        """Each lane's element fetched on its own, where the conditions (a scalar one, and one a lane) hold."""
        kind, size, epoch = extra
        assert self.state.lane is not None
        width = self.state.lane.width
        base, offsets, mask = self._scattered(name, found, *conditions, width)
        depth = self.state.load_depth(name, max(base.depth, offsets.depth, mask.depth), safe=inside)
        return self.state.builder.pure("gather", kind, width, (base, offsets, mask), (size, name, epoch), depth)

    def _near(
        self, name: str, index: tuple[Dim, ...], found: Resolved, extra: tuple[str, int, int], inside: bool
    ) -> Value | None:
        """Lanes that lie near each other in a known order: a few vectors and shuffles. Where minima and maxima keep the
        index inside, that is decided for all lanes at once. None where it is no such index.
        """
        lane, builder = self.state.lane, self.state.builder
        assert lane is not None
        offsets = offsets_by_lane(found, lane.variable, lane.width)
        if offsets is not None:
            return self._ordered(name, found, offsets, extra, inside)
        plain, rooms = without_clamps(index, lane.variable)
        if not rooms:
            return None
        free = self.indices.resolve(self._find_facts(name, plain).flat)
        offsets = offsets_by_lane(free, lane.variable, lane.width)
        condition: Value | None = None
        for room in rooms:
            here = self.indices.resolve(room)
            steps = offsets_by_lane(here, lane.variable, lane.width)
            if steps is None:
                return None
            least = builder.add(self.indices.scalar(here), builder.integer(min(steps)))
            condition = builder.both(condition, builder.compare("sge", least, builder.integer(0)))
        if offsets is None or condition is None or condition.constant is False:
            return None
        key = ("near", name, id(found), extra[2])
        known = builder.known(key)
        if known is not None:
            return known
        scopes = [Scope(branch=True), Scope(branch=True)]
        builder.scopes.append(scopes[0])
        near = self._ordered(name, free, offsets, extra, False)
        builder.scopes[-1] = scopes[1]
        far = self._gathered(name, found, (None, None), extra, False)
        builder.scopes.pop()
        if near is None:
            return None
        merged = builder.fresh(near.kind, near.lanes)
        item = Branch(condition, scopes[0].block, scopes[1].block)
        item.merged.append((merged, near, far))
        builder.scopes[-1].block.items.append(item)
        return builder.keep(key, merged)

    def _ordered(
        self, name: str, found: Resolved, offsets: tuple[int, ...], extra: tuple[str, int, int], inside: bool
    ) -> Value | None:
        """Elements at known offsets from the scalar part, read in at most `CLOSEST` vectors."""
        kind, size, epoch = extra
        builder = self.state.builder
        count, starts = chunks(offsets, len(offsets))
        if len(starts) > CLOSEST:
            return None
        parts: list[Value] = []
        for start in starts:
            pointer = self.address(name, found, start)
            depth = self.state.load_depth(name, pointer.depth, safe=inside)
            lanes = 0 if count == 1 else count
            parts.append(builder.pure("load", kind, lanes, (pointer,), (size, name, False, epoch), depth))
        return in_order(builder, parts, starts, offsets) if count > 1 else builder.wide(parts[0], len(offsets))

    def _strided(
        self, name: str, found: Resolved, extra: tuple[str, int, int], inside: bool, mask: Value | None
    ) -> Value:
        """Every so many elements: whole vectors that end with the last, and shuffles.

        Without a mask all these elements exist; with one, those of its lanes are read and no others.
        """
        builder = self.state.builder
        assert self.state.lane is not None
        kind, size, epoch = extra
        width, step = self.state.lane.width, found.lane
        last = step * (width - 1) - (width - 1)
        value: Value | None = None
        have: list[int] = []
        for start in sorted({min(width * part, last) for part in range(step)}):
            pointer = self.address(name, found, start)
            if mask is None:
                depth = self.state.load_depth(name, pointer.depth, safe=inside)
                part = builder.pure("load", kind, width, (pointer,), (size, name, False, epoch), depth)
            else:
                some = spread_mask(builder, mask, range(start, start + width), step)
                depth = self.state.load_depth(name, max(pointer.depth, some.depth), safe=inside)
                part = builder.pure("masked_load", kind, width, (pointer, some), (size, name, False, epoch), depth)
            here = [start <= step * lane < start + width for lane in range(width)]
            if value is None:
                value, have = part, [step * lane if here[lane] else 0 for lane in range(width)]
                continue
            # lanes found before come from the first operand, those of this vector from the second
            order = tuple(
                have[lane] if step * lane < start else width + step * lane - start if here[lane] else 0
                for lane in range(width)
            )
            value = builder.pure("shuffle", kind, width, (value, part), order)
            have = list(range(width))
        assert value is not None
        return value

    def load_neighbours(self, name: str, index: tuple[Dim, ...], count: int, together: str | None = None) -> Value:
        """`count` elements from one on, all inside the buffer: a vector, or their bits as one value of a kind."""
        builder = self.state.builder
        facts = self.facts(name, index)
        dtype = self.state.buffers[name].dtype
        pointer = self.address(name, self.indices.resolve(facts.flat))
        depth = self.state.load_depth(name, pointer.depth, safe=facts.inside)
        kind, lanes = (memory_kind(dtype), count) if together is None else (together, 0)
        extra = (dtype.itemsize, name, False, self.state.function.epochs.get(name, 0))
        return builder.pure("load", kind, lanes, (pointer,), extra, depth)

    def _scattered(
        self, name: str, found: Resolved, fine: Value | None, mask: Value | None, width: int
    ) -> tuple[Value, Value, Value]:
        builder = self.state.builder
        base = self.address(name, found)
        zero = builder.integer(0)
        offsets = self.indices.by_lane(Resolved(0, found.lane, [], found.vector), zero)
        full = mask if mask is not None else builder.constant("i1", True, width)
        return base, offsets, self._and_scalar(full, fine, width)

    def _or_zeros(self, fine: Value | None, pointer: Value) -> Value:
        if fine is None:
            return pointer
        return self.state.builder.select(fine, pointer, self.state.builder.pure("zeros", "ptr", 0, ()))

    def _and_scalar(self, mask: Value, fine: Value | None, width: int) -> Value:
        builder = self.state.builder
        return mask if fine is None else builder.op("and", "i1", mask, builder.wide(fine, width))

    def reverse(self, value: Value) -> Value:
        """The lanes in the other order."""
        builder = self.state.builder
        if value.constant is not None and not isinstance(value.constant, tuple):
            return value
        order = tuple(reversed(range(value.lanes)))
        return builder.pure("shuffle", value.kind, value.lanes, (value, value), order)

    def load_index(self, element: Loaded) -> Value:
        """A loaded element inside a dim, as an i64."""
        dtype = self.state.buffers[element.buffer].dtype if element.buffer in self.state.buffers else None
        if dtype is None or not (dtype.is_integer or dtype.kind == "boolean"):
            raise CodegenError(1605, f"{element} is no integer element of a buffer", where=self.state.statement)
        value = self.load(element.buffer, element.index, dtype, self.guard_mask)
        builder = self.state.builder
        if register_kind(dtype) == "i64":
            return value
        return builder.op("sext" if dtype.kind == "signed" else "zext", "i64", value)

    guard_mask: Value | None = None
    """The lanes in which the statement runs, for elements loaded inside its indices."""

    # -- stores --------------------------------------------------------------------------------------------------------
    def store(self, name: str, index: tuple[Dim, ...], dtype: DType, value: Value, mask: Value | None) -> None:
        """Write a value to an element, or a vector to one element for each lane. (Not for cells.)"""
        state, builder = self.state, self.state.builder
        facts = self.facts(name, index)
        found = self.indices.resolve(facts.flat)
        fine, mask = self.check(facts, mask)
        raw = conversions.to_memory(builder, value, dtype)
        size = dtype.itemsize
        state.function.epochs[name] = state.function.epochs.get(name, 0) + 1
        lane = state.lane
        if not found.varies or lane is None:
            assert not raw.lanes, "a vector cannot go into one element"
            condition = builder.both(fine, self.any(mask) if mask is not None else None)
            self._store("store", (raw, self.address(name, found)), (size, name, False), condition)
            return
        width = lane.width
        raw = builder.wide(raw, width)
        if found.lane in (1, -1) and not found.vector:
            pointer = self.address(name, found, 0 if found.lane == 1 else 1 - width)
            if found.lane == -1:
                raw = self.reverse(raw)
                mask = self.reverse(mask) if mask is not None else None
            if mask is not None:
                self._store("masked_store", (raw, pointer, mask), (size, name, False), fine)
                return
            alignment = self._streaming_alignment(name, found, width, size)
            self._store("store", (raw, pointer), (alignment or size, name, alignment > 0), fine)
            return
        base, offsets, mask = self._scattered(name, found, fine, mask, width)
        builder.effect("scatter", (raw, base, offsets, mask), (size, name))

    def _store(self, name: str, operands: tuple[Value, ...], extra: object, condition: Value | None) -> None:
        builder = self.state.builder
        if condition is None or condition.constant is True:
            builder.effect(name, operands, extra)
        else:
            branch = Branch(condition, Block(), Block())
            branch.then.items.append(Instruction(name, operands, None, extra))
            builder.scopes[-1].block.items.append(branch)

    def _streaming_alignment(self, name: str, found: Resolved, width: int, size: int) -> int:
        """Bytes to which a streaming store is aligned when its buffer is aligned to 64; 0: it does not stream."""
        if not self.state.streams or name not in self.state.streaming or found.lane != 1:
            return 0
        span = width * size
        if span & (span - 1) or span < 16:
            return 0
        aligned = found.constant % width == 0 and all(coefficient % width == 0 for _, coefficient in found.terms)
        return min(span, 64) if aligned else 0
