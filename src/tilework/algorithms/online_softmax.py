"""Attention by online softmax: over blocks of keys, with a running maximum and a running sum for each query.

Scores of a block of queries and a block of keys are all there ever is of the score matrix. What has been added up so
far is scaled down where a block brings a larger maximum (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018; Rabe and Staats, "Self-attention does not need O(n^2) memory", 2021; Dao and others, "FlashAttention",
2022).

Against the softmax of whole rows, sums are grouped otherwise and are divided once, at the end: an error of the same
order, and results that overflow where sums of that many values do. A row whose scores are all -inf is NaN, as there.

    for each batch and block of queries
      largest = -inf, total = 0, sums = 0
      for each block of keys
        scores = query keys;  largest = max(largest, scores)
        scores = exp(scores - largest);  shrink = exp(largest before - largest)
        total = total shrink + sum of scores;  sums = sums shrink + scores values
      result = sums / total

Loops are named by statement and axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilework.algorithms.attention import SCORE, Attention
from tilework.compute.notation import Axis
from tilework.dims import Dim, dim, minimum, symbol_bounds
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Expression, Load, Parameter, call, constant, index, loads, rewrite, substitute
from tilework.loops.program import (
    Access,
    Argument,
    Buffer,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Reducer,
    Storage,
    sequence,
)  # fmt: skip
from tilework.loops.reducers import reducer

KEYS, VALUES, QUERY = "keys", "values", "query"
"""Copies of the operands: of all keys and values, whole blocks of them; of a block of queries."""
SCORES, WEIGH = "scores", "weigh"
"""The two products."""
SCORED = "scored"
"""Scores after scale and mask."""


def online_softmax(attention: Attention, rows: int, keys: int, *, copy_values: bool = True) -> LoopProgram:
    """The loop program with blocks of so many queries and keys, over the computation's inputs and its output.

    Blocks at the end are whole: what they lack is zero in the copies, and hidden among the scores. Only where an extent
    is free do loops end with it: a block is then much more than few queries or keys need. Where one block holds all
    keys, nothing is running: the softmax is that of whole rows. `copy_values` may be false for values that are elements
    of an input and fill their blocks.
    """
    return _Program(attention, rows, keys, copy_values).program()


@dataclass
class _Program:
    attention: Attention
    rows: int
    keys: int
    copy_values: bool
    storage: list[Buffer] = field(default_factory=list[Buffer])
    """What lives while a block of queries is treated; `near`: while a block of keys is, for them."""
    near: list[Buffer] = field(default_factory=list[Buffer])

    @property
    def high(self) -> Dim:
        """Queries of a block, for loops over them: of a free number of queries those that there are."""
        extent = self.attention.row.extent
        return dim(self.rows) if extent.value is not None else minimum(self.rows, extent - dim("block") * self.rows)

    @property
    def wide(self) -> Dim:
        """Keys of a block, for loops over them: of a free number of keys those that there are."""
        extent = self.attention.key.extent
        return dim(self.keys) if extent.value is not None else minimum(self.keys, extent - dim("step") * self.keys)

    @property
    def single(self) -> bool:
        """Whether one block holds all keys."""
        return _blocks(self.attention.key.extent, self.keys) == 1

    @property
    def partial_keys(self) -> bool:
        """Whether a block of keys among others is not full."""
        extent = self.attention.key.extent
        return not self.single and extent.value is not None and _blocks(extent, self.keys) * self.keys != extent

    @property
    def partial_rows(self) -> bool:
        extent = self.attention.row.extent
        return extent.value is not None and _blocks(extent, self.rows) * self.rows != extent

    # -- pieces ----------------------------------------------------------------------------------------------------
    def buffer(self, name: str, *shape: Dim | int, near: bool = False) -> Buffer:
        """Storage of a block of queries, or (`near`) of a block of keys for them."""
        made = Buffer(name, tuple(map(dim, shape)), self.attention.dtype)
        (self.near if near else self.storage).append(made)
        return made

    def statement(
        self,
        name: str,
        target: Buffer,
        place: Sequence[Dim],
        value: Expression,
        loops: Sequence[tuple[str, Dim | int]],
        combine: Reducer | None = None,
        *,
        guards: Sequence[Dim] = (),
        summed: str = "",
    ) -> Node:
        """A statement in loops of its own; with `summed` a reduction that starts anew, else one that goes on."""
        node: Node = Compute(
            name, (Access(target.name, tuple(place)),), (value,), combine,
            combine.identity if combine is not None and summed else None, (summed,) if summed else (), tuple(guards),
        )  # fmt: skip
        for variable, extent in reversed(loops):
            node = Loop(variable, dim(extent), "serial", node)
        return node

    def over_rows(self, name: str, target: Buffer, value: Expression, *, guards: Sequence[Dim] = ()) -> Node:
        """A statement for each query of a block, whose value names the query `name`.i."""
        return self.statement(name, target, (dim(f"{name}.i"),), value, [(f"{name}.i", self.high)], guards=guards)

    def number(self, value: float) -> Expression:
        return constant(value, self.attention.dtype)

    def axes_of(self, expression: Expression, batch: str, names: dict[str, Dim]) -> Expression:
        """An expression of the attention over the loops of a statement: batch axes get the ending `batch`."""
        moved = {axis.name: dim(f"{batch}.{n}") for n, axis in enumerate(self.attention.batch)}
        return substitute(expression, {**moved, **names})

    def batch_loops(self, name: str) -> list[tuple[str, Dim | int]]:
        return [(f"{name}.{n}", axis.extent) for n, axis in enumerate(self.attention.batch)]

    # -- the program -----------------------------------------------------------------------------------------------
    def program(self) -> LoopProgram:
        found = self.attention
        copies = [self.copied(KEYS, found.keys, found.depth)]
        if self.copy_values:
            copies.append(self.copied(VALUES, found.values, found.column))
        body = self.block()
        for made in reversed(self.storage):
            body = Storage(made, body)
        count = _blocks(found.row.extent, self.rows)
        for variable, extent in reversed([*self.batch_loops("batch"), ("block", count)]):
            body = Loop(variable, dim(extent), "serial", body)
        body = sequence(*(node for _, node in copies), body)
        for made, _ in reversed(copies):
            body = Storage(made, body)
        whole = found.computation
        arguments = (*(Argument(b, "read") for b in whole.inputs), Argument(found.output, "write"))
        return LoopProgram(whole.name, arguments, body, whole.symbols)

    def copied(self, name: str, value: Expression, across: Axis) -> tuple[Buffer, Node]:
        """Keys or values in whole blocks: what they lack is zero."""
        found = self.attention
        length = found.key.extent
        whole = _blocks(length, self.keys) * self.keys if length.value is not None else length
        batch = self.batch_loops(name)
        places = tuple(dim(variable) for variable, _ in batch)
        first = len(places)
        j, k = f"{name}.{first}", f"{name}.{first + 1}"
        made = Buffer(name, (*(axis.extent for axis in found.batch), whole, across.extent), found.dtype)
        moved = self.axes_of(value, name, {found.key.name: dim(j), across.name: dim(k)})
        copy = self.statement(
            name, made, (*places, dim(j), dim(k)), moved, [*batch, (j, length), (k, across.extent)]
        )  # fmt: skip
        if whole == length:
            return made, copy
        rest = f"{name}.rest"
        batch = self.batch_loops(rest)
        places = tuple(dim(variable) for variable, _ in batch)
        j, k = f"{rest}.{first}", f"{rest}.{first + 1}"
        fill = self.statement(
            rest, made, (*places, length + dim(j), dim(k)), self.number(0.0),
            [*batch, (j, whole - length), (k, across.extent)],
        )  # fmt: skip
        return made, sequence(copy, fill)

    def block(self) -> Node:
        """What is done for a block of queries."""
        found, rows = self.attention, self.rows
        one, zero = self.number(1.0), self.number(0.0)
        sums = self.buffer("sums", rows, found.column.extent)
        total, shares = self.buffer("total", rows), self.buffer("share", rows)
        nodes = [self.query()]
        shown: Buffer | None = None
        if found.hidden is not None:
            shown = self.buffer("shown", rows)
            hidden = self.axes_of(found.hidden, "batch", {found.row.name: self.row("shown.i")})
            nodes += [self.over_rows("shown.start", shown, one)] if self.partial_rows else []
            guards = self.existing("shown.i") if self.partial_rows else ()
            nodes.append(self.over_rows("shown", shown, call("select", hidden, zero, one), guards=guards))
        nodes += self.all_keys(sums, total, shown)
        share = one / _at(total, "share.i")
        if shown is not None:
            share = call("select", call("equal", _at(shown, "share.i"), zero), one, share)
        if found.key.extent.bounds(symbol_bounds(found.computation.symbols))[0] < 1:  # sums of nothing are zero
            share = call("select", call("equal", index(found.key.extent), 0), one, share)
        nodes.append(self.over_rows("share", shares, share))
        if self.single:
            nodes.append(self.weighed(sums, self.powers))
        place = {axis.name: dim(f"batch.{n}") for n, axis in enumerate(found.batch)}
        place |= {found.row.name: self.row("result.i"), found.column.name: dim("result.e")}
        nodes.append(
            self.statement(
                "result", found.output, [entry.substitute(place) for entry in found.place],
                _at(sums, "result.i", "result.e") * _at(shares, "result.i"),
                [("result.i", self.high), ("result.e", found.column.extent)],
                guards=self.existing("result.i") if self.partial_rows else (),
            )
        )  # fmt: skip
        node = sequence(*nodes)
        if self.single:
            for made in reversed(self.near):
                node = Storage(made, node)
        return node

    def all_keys(self, sums: Buffer, total: Buffer, shown: Buffer | None) -> list[Node]:
        """All that is done with keys: the loop over blocks of them, and what runs along with it; or the one block."""
        found, rows = self.attention, self.rows
        zero, least = self.number(0.0), self.number(-math.inf)
        largest = self.buffer("largest", rows)
        if self.single:
            return self.step(largest, total, None, shown)
        nodes = [
            self.over_rows("largest.start", largest, least),
            self.over_rows("total.start", total, zero),
            self.statement(
                "sums.start", sums, _place("sums.start.i", "sums.start.e"), zero,
                [("sums.start.i", self.high), ("sums.start.e", found.column.extent)],
            ),
        ]  # fmt: skip
        inner = self.step(largest, total, sums, shown)
        step = sequence(*inner, self.weighed(sums, self.powers))
        for made in reversed(self.near):
            step = Storage(made, step)
        return [*nodes, Loop("step", _blocks(found.key.extent, self.keys), "serial", step)]

    def row(self, variable: str) -> Dim:
        """The query of a block's row."""
        return dim("block") * self.rows + dim(variable)

    def existing(self, variable: str) -> tuple[Dim, ...]:
        """The guard of a row that may be beyond the last query."""
        return (self.attention.row.extent - 1 - self.row(variable),)

    def key(self, variable: str) -> Dim:
        """The key of a block's column."""
        return dim(variable) if self.single else dim("step") * self.keys + dim(variable)

    def query(self) -> Node:
        """The block's queries, zero beyond the last one."""
        found = self.attention
        made = self.buffer(QUERY, self.rows, found.depth.extent)
        i, k = f"{QUERY}.i", f"{QUERY}.k"
        loops: list[tuple[str, Dim | int]] = [(i, self.high), (k, found.depth.extent)]
        value = self.axes_of(found.query, "batch", {found.row.name: self.row(i), found.depth.name: dim(k)})
        if not self.partial_rows:
            return self.statement(QUERY, made, _place(i, k), value, loops)
        i0, k0 = f"{QUERY}.rest.i", f"{QUERY}.rest.k"
        beyond = self.row(i0) - found.row.extent
        rest = self.statement(
            f"{QUERY}.rest", made, _place(i0, k0), self.number(0.0), [(i0, self.rows), (k0, found.depth.extent)],
            guards=[beyond],
        )  # fmt: skip
        return sequence(self.statement(QUERY, made, _place(i, k), value, loops, guards=self.existing(i)), rest)

    def pair(self, name: str, last: str = "j") -> tuple[str, str, list[tuple[str, Dim | int]]]:
        """Loops of a statement over the queries of a block and its keys (`e`: the columns)."""
        keys = self.attention.key.extent if self.single else self.wide
        size = keys if last == "j" else self.attention.column.extent
        return f"{name}.i", f"{name}.{last}", [(f"{name}.i", self.high), (f"{name}.{last}", size)]

    def step(self, largest: Buffer, total: Buffer, sums: Buffer | None, shown: Buffer | None) -> list[Node]:
        """What is done for a block of keys, up to the powers; with `sums` it goes on from blocks before."""
        found, rows, keys = self.attention, self.rows, self.keys
        shift = self.buffer("shift", rows, near=True)
        add, zero, least = reducer("sum", found.dtype), self.number(0.0), self.number(-math.inf)
        batch = [f"batch.{n}" for n in range(len(found.batch))]
        i, j, k = f"{SCORES}.i", f"{SCORES}.j", f"{SCORES}.k"
        loops: list[tuple[str, Dim | int]] = [(i, self.high), (j, self.wide), (k, found.depth.extent)]
        scores = self.buffer(SCORES, rows, keys, near=True)
        product = Load(QUERY, _place(i, k), found.dtype) * Load(
            KEYS, (*_place(*batch), self.key(j), dim(k)), found.dtype
        )
        nodes = [self.statement(SCORES, scores, _place(i, j), product, loops, add, summed=k)]
        nodes += self.scored(scores)
        scores = self.powers
        before = self.buffer("before", rows) if sums is not None else None
        if before is not None:
            nodes.append(self.over_rows("before", before, _at(largest, "before.i")))
        i, j, loops = self.pair("largest")
        start = j if sums is None else ""
        nodes.append(
            self.statement("largest", largest, _place(i), _at(scores, i, j), loops, _larger(found), summed=start)
        )
        # of a row that has no score above -inf yet, nothing is subtracted: every power is zero then
        safe = call("select", call("equal", _at(largest, "shift.i"), least), zero, _at(largest, "shift.i"))
        nodes.append(self.over_rows("shift", shift, safe))
        i, j, loops = self.pair("power")
        power = call("exp", call("minimum", _at(scores, i, j) - _at(shift, i), 0.0))
        if shown is not None:
            power = call("select", call("equal", _at(shown, i), zero), zero, power)
        nodes.append(self.statement("power", scores, _place(i, j), power, loops))
        if before is not None and sums is not None:
            shrink = self.buffer("shrink", rows)
            value = call("exp", call("minimum", _at(before, "shrink.i") - _at(shift, "shrink.i"), 0.0))
            nodes.append(self.over_rows("shrink", shrink, value))
            scaled = _at(total, "total.shrunk.i") * _at(shrink, "total.shrunk.i")
            nodes.append(self.over_rows("total.shrunk", total, scaled))
            i, e, loops = self.pair("sums.shrunk", "e")
            nodes.append(self.statement("sums.shrunk", sums, _place(i, e), _at(sums, i, e) * _at(shrink, i), loops))
        i, j, loops = self.pair("total")
        start = j if sums is None else ""
        nodes.append(self.statement("total", total, _place(i), _at(scores, i, j), loops, add, summed=start))
        return nodes

    @property
    def powers(self) -> Buffer:
        """Where scores become powers."""
        return next(b for b in reversed(self.near) if b.name in (SCORED, SCORES))

    def weighed(self, sums: Buffer, powers: Buffer) -> Node:
        """The product of powers and values."""
        found = self.attention
        i, e, loops = self.pair(WEIGH, "e")
        _, j, both = self.pair(WEIGH)
        batch = [f"batch.{n}" for n in range(len(found.batch))]
        value: Expression = Load(VALUES, (*_place(*batch), self.key(j), dim(e)), found.dtype)
        if not self.copy_values:
            value = self.axes_of(found.values, "batch", {found.key.name: self.key(j), found.column.name: dim(e)})
        product = _at(powers, i, j) * value
        start = j if self.single else ""
        add = reducer("sum", found.dtype)
        return self.statement(WEIGH, sums, _place(i, e), product, [*loops, both[1]], add, summed=start)

    def scored(self, scores: Buffer) -> list[Node]:
        """Scale and mask, and -inf for keys beyond the last one."""
        found, rows, keys = self.attention, self.rows, self.keys
        i, j = f"{SCORED}.i", f"{SCORED}.j"
        value = self.axes_of(found.score, "batch", {found.row.name: self.row(i), found.key.name: self.key(j)})
        element, least = _at(scores, i, j), self.number(-math.inf)
        value = rewrite(value, lambda leaf: element if isinstance(leaf, Parameter) and leaf.name == SCORE else leaf)
        masked = any(load.buffer != scores.name for load in loads(value))
        guards: list[Dim] = []
        if masked:  # elements of a mask that do not exist may not be read
            guards += self.existing(i) if self.partial_rows else ()
            guards += (
                [found.key.extent - 1 - self.key(j)]
                if self.partial_keys or (self.single and found.key.extent != keys)
                else []
            )
        elif self.partial_keys:
            value = call("select", call("less", index(self.key(j)), index(found.key.extent)), value, least)
        if value is element:
            return []
        scored = self.buffer(SCORED, rows, keys, near=True)
        nodes = [self.statement(SCORED, scored, _place(i, j), value, [(i, self.high), (j, self.wide)], guards=guards)]
        if masked and self.partial_rows:
            i, j = f"{SCORED}.rest.i", f"{SCORED}.rest.j"
            guard = self.row(i) - found.row.extent
            place, zero = _place(i, j), self.number(0.0)
            nodes.append(
                self.statement(f"{SCORED}.rest", scored, place, zero, [(i, rows), (j, keys)], guards=[guard])
            )  # fmt: skip
        if masked and self.partial_keys:
            i, j = "beyond.i", "beyond.j"
            guard = self.key(j) - found.key.extent
            nodes.append(
                self.statement("beyond", scored, _place(i, j), least, [(i, rows), (j, keys)], guards=[guard])
            )  # fmt: skip
        return nodes


def _at(buffer: Buffer, *place: Dim | str) -> Load:
    return Load(buffer.name, tuple(map(dim, place)), buffer.dtype)


def _place(*variables: str) -> tuple[Dim, ...]:
    return tuple(map(dim, variables))


def _blocks(extent: Dim, size: int) -> Dim:
    """How many blocks of a size cover an extent."""
    return (extent + (size - 1)) // size


def _larger(attention: Attention) -> Reducer:
    """The larger of two, without a look for NaN: a NaN's own exponential is NaN, and so is the sum."""
    left, right = Parameter("left", attention.dtype), Parameter("right", attention.dtype)
    larger = call("select", call("greater", left, right), left, right)
    return Reducer("larger", (left,), (right,), (larger,), (constant(-math.inf, attention.dtype),))
