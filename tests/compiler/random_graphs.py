"""Random typed graphs over every operator that has a definition.

Values are whole numbers small enough that every sum and product of them is exact, in any order: results can then be
compared bit for bit. A value that comes from a function that is not exact is marked `rough`; only operators whose error
is easily bounded are applied to it (`error_bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tests.compiler.drawing import (
    DIRECTIONS,
    EXACT_BINARY,
    EXACT_UNARY,
    FLOATS,
    INTEGER_BINARY,
    INTEGERS,
    LARGEST_ROUGH,
    ROUGH_UNARY,
    SYMBOLS,
    WHOLE_LIMIT,
    Choices,
    Known,
    Unsuitable,
    broadcasts,
    largest,
    numbers,
    size_of,
    upper,
)
from tilework import dtypes
from tilework.dims import Dim, dim, minimum, product
from tilework.dtypes import DType
from tilework.graph.graph import Graph, Value
from tilework.ops.builder import GraphBuilder

Item = TypeVar("Item")


@dataclass
class RandomGraph:
    """Draws one graph, node by node. `special`: floating inputs hold NaN, infinities and negative zeros too."""

    choices: Choices
    special: bool = False
    symbolic: bool = True
    largest: int = 1500
    """Most elements of a value, symbols counted as 8."""
    builder: GraphBuilder = field(init=False)
    known: list[Known] = field(default_factory=list[Known])
    operators: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.builder = GraphBuilder("random", SYMBOLS if self.symbolic else ())

    # -- choices -------------------------------------------------------------------------------------------------------
    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.choices.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.choices.integer(0, 99) >= 100 - percent

    def some(self, count: int) -> list[int]:
        return [k for k in range(count) if self.choices.integer(0, 1)]

    def permutation(self, count: int) -> list[int]:
        left = list(range(count))
        return [left.pop(self.choices.integer(0, len(left) - 1)) for _ in range(count)]

    def extent(self) -> Dim:
        if self.symbolic and self.chance(25):
            return self.pick([dim("N"), dim("M"), dim("N") + 1, dim("M") * 2])
        if self.largest > 10_000 and self.chance(60):
            return dim(self.pick((31, 64, 100, 129, 300)))
        return dim(self.pick((1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 0)))

    def shape(self, most: int = 4) -> list[Dim]:
        found: list[Dim] = []
        for _ in range(self.choices.integer(0, most)):
            extent = self.extent()
            if size_of([*found, extent]) <= self.largest:
                found.append(extent)
        return found

    def dtype(self) -> DType:
        kind = self.choices.integer(0, 19)
        if kind < 13:
            return self.pick(FLOATS)
        if kind < 18:
            return self.pick(INTEGERS)
        return dtypes.boolean

    def value(self, suits: Callable[[Known], bool] = lambda _: True) -> Known:
        found = [known for known in self.known if suits(known)]
        if not found:
            raise Unsuitable
        # later ones first, so that chains grow
        return found[-1 - min(self.choices.integer(0, len(found) - 1), self.choices.integer(0, len(found) - 1))]

    # -- building ------------------------------------------------------------------------------------------------------
    def apply(self, name: str, *operands: Known | Value, bound: float, rough: bool = False, **attributes: Any) -> Known:
        given = [operand.value if isinstance(operand, Known) else operand for operand in operands]
        rough = rough or any(isinstance(operand, Known) and operand.rough for operand in operands)
        made = self.builder.apply_one(name, *given, **attributes)
        found = Known(made, bound, rough and made.tensor.dtype.is_floating)
        self.operators.append(name)
        self.known.append(found)
        return found

    def constant(self, value: Any, dtype: DType) -> Value:
        return self.builder.constant(np.asarray(value).astype(dtype.numpy))

    def bounded(self, known: Known, bound: int) -> Known:
        """The value with its elements moved into -bound .. bound."""
        if known.bound <= bound or known.dtype.kind == "boolean":
            return known
        low = 0 if known.dtype.kind == "unsigned" else -bound
        return self.apply(
            "clamp", self.constant(low, known.dtype), known, self.constant(bound, known.dtype), bound=bound
        )

    def fits(self, dtype: DType, bound: float, rough: bool) -> None:
        if dtype.is_floating and bound > (LARGEST_ROUGH if rough else WHOLE_LIMIT)[dtype.name]:
            raise Unsuitable

    def partner(self, known: Known, *, rough: bool = True) -> Known:
        """Another value of the same type that broadcasts with this one: a known one, or a constant."""

        def suits(other: Known) -> bool:
            return other.dtype == known.dtype and broadcasts(other.shape, known.shape) and (rough or not other.rough)

        if self.chance(75):
            return self.value(suits)
        shape = [extent.value if extent.value is not None and self.chance(60) else 1 for extent in known.shape]
        return self.new_constant(known.dtype, shape[self.choices.integer(0, len(shape)) :])

    def new_constant(self, dtype: DType, shape: Sequence[int]) -> Known:
        array = numbers(np.random.default_rng(self.choices.integer(0, 9)), dtype, tuple(shape), special=False)
        found = Known(self.builder.constant(array), largest(dtype))
        self.known.append(found)
        return found

    def start(self, count: int) -> None:
        """Inputs; the first two show the symbols."""
        shapes = [[dim("N"), dim(3)], [dim("M"), dim("N")], *(self.shape() for _ in range(count))]
        for number, shape in enumerate(shapes if self.symbolic else shapes[2:]):
            dtype = dtypes.float32 if number < 2 else self.dtype()
            self.known.append(Known(self.builder.input(f"in{number}", dtype, *shape), largest(dtype)))

    def grow(self) -> None:
        """One more operator, or several for one."""
        kinds = (
            self.unary, self.binary, self.unary, self.binary, self.movement, self.movement, self.movement,
            self.reduction, self.contraction, self.indexing, self.rough_function, self.change_type, self.choice,
            self.window, self.source,
        )  # fmt: skip
        held = len(self.known)
        try:
            self.pick(kinds)()
        except Unsuitable:
            return
        self.known = [k for n, k in enumerate(self.known) if n < held or size_of(k.shape) <= self.largest]

    def finish(self) -> Graph:
        """The graph; outputs are any values: results, inputs, constants, the same one twice."""
        outputs = [self.known[-1].value]
        for _ in range(self.choices.integer(0, 3)):
            outputs.append(self.value().value)
        return self.builder.build(outputs)

    # -- operators -----------------------------------------------------------------------------------------------------
    def unary(self) -> None:
        x = self.value()
        if x.dtype.kind == "boolean":
            self.apply("not", x, bound=1)
        elif x.dtype.is_integer:
            name = self.pick(("negate", "abs", "sign", "not", "population_count"))
            self.apply(name, x, bound=largest(x.dtype, whole=True))
        elif x.rough:
            self.apply(self.pick(("negate", "abs")), x, bound=x.bound)
        elif self.chance(15):
            self.apply(self.pick(("is_nan", "is_inf")), x, bound=1)
        else:
            self.apply(self.pick(EXACT_UNARY), x, bound=x.bound)

    def binary(self) -> None:
        x = self.value()
        if x.dtype.kind == "boolean":
            self.apply(self.pick(("and", "or", "xor", "maximum", "minimum")), x, self.partner(x), bound=1)
            return
        y = self.partner(x)
        if self.choices.integer(0, 1):
            x, y = y, x
        if x.dtype.is_integer:
            name = self.pick((*EXACT_BINARY, *INTEGER_BINARY))
            self.apply(name, x, y, bound=largest(x.dtype, whole=True))
            return
        rough = x.rough or y.rough
        if not rough and self.chance(20):
            self.apply("compare", x, y, bound=1, direction=self.pick(DIRECTIONS))
            return
        name = self.pick(EXACT_BINARY if rough or self.chance(80) else ("remainder", "floor_remainder"))
        limit = WHOLE_LIMIT[x.dtype.name]
        most = int(limit**0.5) if name == "multiply" else limit // 2
        if not rough and name in ("multiply", "add", "subtract"):
            x, y = self.bounded(x, most), self.bounded(y, most)
        bound = {"multiply": x.bound * y.bound, "maximum": max(x.bound, y.bound), "minimum": max(x.bound, y.bound)}.get(
            name, x.bound + y.bound
        )
        self.fits(x.dtype, bound, rough)
        self.apply(name, x, y, bound=bound)

    def choice(self) -> None:
        x = self.value()
        if self.choices.integer(0, 1) and x.dtype.kind != "boolean":
            self.bounded(x, self.pick((1, 2, 3)))
            return
        predicate = self.value(lambda k: k.dtype.kind == "boolean" and broadcasts(k.shape, x.shape))
        y = self.partner(x)
        if not broadcasts(y.shape, predicate.shape):
            raise Unsuitable
        self.apply("select", predicate, x, y, bound=max(x.bound, y.bound))

    def change_type(self) -> None:
        x = self.value()
        target = self.dtype()
        if x.rough:
            if not target.is_floating:
                raise Unsuitable
            self.fits(target, x.bound, rough=True)
        elif x.dtype.is_integer and target.is_integer and target.bits == x.dtype.bits:
            self.apply("bitcast_convert", x, bound=largest(target, whole=True), dtype=target)
            return
        elif target.is_floating:
            x = self.bounded(x, int(min(WHOLE_LIMIT[target.name], largest(x.dtype, whole=True))))
        bound = x.bound if target.is_floating else largest(target, whole=True)
        self.apply("convert", x, bound=bound, dtype=target)

    def rough_function(self) -> None:
        x = self.value(lambda k: k.dtype.is_floating and not k.rough)
        if self.chance(25):
            x = self.bounded(x, 4)
            y = self.bounded(self.partner(x, rough=False), 4)
            if y.dtype != x.dtype:
                raise Unsuitable
            # the sign of a zero is not promised at every level: no divisor may show it
            name = self.pick(("divide", "power", "atan2"))
            positive = self.apply("abs", y, bound=y.bound)
            if name == "divide":
                self.apply(name, x, positive, bound=x.bound, rough=True)
            else:
                base = self.apply("abs", x, bound=x.bound)
                first, second = (base, positive) if name == "power" else (positive, base)
                bound = base.bound**positive.bound if name == "power" else 4.0
                self.fits(x.dtype, bound, rough=True)
                self.apply(name, first, second, bound=bound, rough=True)
            return
        if self.chance(25) and x.rank:
            x = self.bounded(x, 8)
            name = self.pick(("softmax", "log_softmax"))
            bound = 1 if name == "softmax" else 2 * x.bound + 10
            self.apply(name, x, bound=bound, rough=True, dimension=self.choices.integer(0, x.rank - 1))
            return
        name = self.pick(ROUGH_UNARY)
        x = self.bounded(x, 8)
        if name == "rsqrt":
            x = self.apply("abs", x, bound=x.bound)
        self.apply(name, x, bound=3000, rough=True)

    def movement(self) -> None:
        x = self.value()
        rank, shape = x.rank, x.shape
        match self.choices.integer(0, 10):
            case 0 | 1:
                self.apply("transpose", x, bound=x.bound, permutation=self.permutation(rank))
            case 2:
                self.apply("reshape", x, bound=x.bound, shape=self.regrouped(shape))
            case 3:
                # another expression of the same number, as far as types can tell
                same = [minimum(e, e * 2) if e.value is None and self.chance(50) else e for e in shape]
                self.apply("assume", x, bound=x.bound, shape=same)
            case 4:
                places = sorted(self.permutation(rank + self.choices.integer(0, 2))[:rank])
                if self.chance(30):
                    places = [places[k] for k in self.permutation(rank)]
                most = max([rank, *(p + 1 for p in places)])
                wide = [dim(self.pick((1, 2, 3, 5))) for _ in range(most)]
                for place, extent in zip(places, shape, strict=True):
                    if extent != 1 or self.chance(50):
                        wide[place] = extent
                self.apply("broadcast_in_dim", x, bound=x.bound, shape=wide, broadcast_dimensions=places)
            case 5:
                start: list[int] = []
                limit: list[Dim | int] = []
                stride: list[int] = []
                for extent in shape:
                    most = extent.value
                    if most is None or self.chance(30):
                        start.append(0)
                        limit.append(extent)
                        stride.append(self.pick((1, 2)))
                    else:
                        start.append(self.choices.integer(0, most))
                        limit.append(self.choices.integer(start[-1], most))
                        stride.append(self.pick((1, 1, 2, 3)))
                self.apply("slice", x, bound=x.bound, start_indices=start, limit_indices=limit, strides=stride)
            case 6:
                zero = self.constant(self.choices.integer(0, 1), x.dtype)
                low = [self.choices.integer(-1 if (e.value or 0) >= 2 else 0, 2) for e in shape]
                high = [self.choices.integer(-1 if (e.value or 0) >= 2 else 0, 2) for e in shape]
                gaps = [self.pick((0, 0, 1)) if e.value is not None and e.value > 0 else 0 for e in shape]
                self.apply(
                    "pad", x, zero, bound=max(x.bound, 1), edge_padding_low=low, edge_padding_high=high,
                    interior_padding=gaps,
                )  # fmt: skip
            case 7:
                able = [(e.value is not None and e.value > 0) or e == dim("M") for e in shape]
                low = [self.choices.integer(0, 2) if a else 0 for a in able]
                high = [self.choices.integer(0, 2) if a else 0 for a in able]
                mode = self.pick(("reflect", "edge", "wrap"))
                self.apply("pad_reflect", x, bound=x.bound, low=low, high=high, mode=mode)
            case 8:
                self.apply("reverse", x, bound=x.bound, dimensions=self.some(rank))
            case 9:
                self.resampled(x)
            case _:
                if not rank:
                    raise Unsuitable
                along = self.choices.integer(0, rank - 1)

                def beside(other: Known) -> bool:
                    same = [d for d in range(rank) if d != along]
                    return (
                        other.dtype == x.dtype and other.rank == rank and all(other.shape[d] == shape[d] for d in same)
                    )

                parts = [x, *(self.value(beside) for _ in range(self.choices.integer(0, 2)))]
                self.apply("concatenate", *parts, bound=max(p.bound for p in parts), dimension=along)

    def resampled(self, x: Known) -> None:
        """Each dimension wider or narrower by a ratio of small numbers."""
        shape: list[Dim] = []
        for extent in x.shape:
            empty = extent.value == 0 or (extent.value is None and extent != dim("M"))
            wide = self.pick((extent, extent * 2, (extent + 1) // 2, extent + 2))
            shape.append(extent if empty else wide)
        if size_of(shape) > 4 * self.largest:
            raise Unsuitable
        starts = [self.choices.integer(-3, 3) for _ in shape]
        steps = [self.pick((1, 1, 2, 3)) for _ in shape]
        divisors = [self.pick((1, 2, 2, 3, 4)) for _ in shape]
        self.apply("resample", x, bound=x.bound, shape=shape, starts=starts, steps=steps, divisors=divisors)

    def regrouped(self, shape: Sequence[Dim]) -> list[Dim]:
        """Dimensions merged, split, and ones put in or taken out."""
        if any(extent == 0 for extent in shape):
            return list(shape)
        found: list[Dim] = []
        for extent in shape:
            if extent == 1 and self.chance(50):
                continue
            size = extent.value
            if found and self.chance(40):
                found[-1] = found[-1] * extent
            elif size is not None and size > 3 and self.chance(40):
                factor = next((f for f in (2, 3, 5, 7) if size % f == 0), size)
                found.extend([dim(factor), dim(size // factor)])
            else:
                found.append(extent)
            if self.chance(20):
                found.append(dim(1))
        size = product(found).value
        if size is not None and found and self.chance(25):
            return [dim(size)]
        return found

    def reducer(self, x: Known, names: Sequence[str], count: Dim) -> tuple[Known, str, float]:
        """A reducer for a value whose elements are combined by `count`; the value bounded so that this is exact."""
        if x.dtype.kind == "boolean":
            return x, self.pick([n for n in names if n in ("maximum", "minimum", "and", "or")]), 1
        if x.dtype.is_integer:
            usual = [n for n in names if n != "replace"]
            return x, self.pick(usual), largest(x.dtype, whole=True)
        name = self.pick([n for n in names if n not in ("and", "or")])
        if name in ("maximum", "minimum"):
            return x, name, x.bound
        if name == "product":
            if x.rough:
                raise Unsuitable
            return self.bounded(x, 1), name, 1
        many = max(1, upper(count))
        if x.rough:
            self.fits(x.dtype, x.bound * many, rough=True)
        else:
            limit = WHOLE_LIMIT[x.dtype.name]
            if many > limit:
                raise Unsuitable
            x = self.bounded(x, limit // many)
        return x, name, x.bound * many

    def reduction(self) -> None:
        x = self.value()
        names = ("sum", "product", "maximum", "minimum", "and", "or")
        kind = self.choices.integer(0, 5)
        if kind <= 2:
            chosen = self.some(x.rank)
            x, name, bound = self.reducer(x, names, product(x.shape[d] for d in chosen))
            keep = bool(self.choices.integer(0, 1))
            self.apply("reduce", x, bound=bound, dimensions=chosen, reducer=name, keep_dimensions=keep)
            return
        if not x.rank:
            raise Unsuitable
        along = self.choices.integer(0, x.rank - 1)
        if kind == 3 and not x.rough:
            if x.shape[along] == 0:
                raise Unsuitable
            self.apply(
                "arg_reduce", x, bound=largest(dtypes.int64, whole=True), dimension=along,
                direction=self.pick(("maximum", "minimum")), keep_dimensions=bool(self.choices.integer(0, 1)),
                last=bool(self.choices.integer(0, 1)),
            )  # fmt: skip
            return
        x, name, bound = self.reducer(x, names, x.shape[along])
        if x.rough:
            raise Unsuitable
        exclusive, reverse = bool(self.choices.integer(0, 1)), bool(self.choices.integer(0, 1))
        self.apply(
            "cumulative", x, bound=bound, dimension=along, reducer=name, exclusive=exclusive, reverse=reverse
        )  # fmt: skip

    def window(self) -> None:
        x = self.value(lambda k: k.rank > 0)
        sizes = [self.pick((1, 2, 3)) if self.chance(60) else 1 for _ in x.shape]
        hole = [self.pick((1, 1, 2)) for _ in x.shape]
        base = [self.pick((1, 1, 1, 2)) if e.value is not None and e.value > 0 else 1 for e in x.shape]
        pads: list[tuple[int, int]] = []
        for extent, size, gap in zip(x.shape, sizes, hole, strict=True):
            need = (size - 1) * gap + 1
            if extent.value is not None and extent.value >= need + 2 and self.chance(40):
                pads.append((self.choices.integer(-1, 2), self.choices.integer(-1, 2)))
            else:  # what is padded holds a window even where the operand has no element
                low = self.choices.integer(0, need)
                pads.append((low, need - low))
        strides = [self.pick((1, 1, 2, 3)) for _ in x.shape]
        names = ("sum", "product", "maximum", "minimum", "and", "or")
        x, name, bound = self.reducer(x, names, dim(int(np.prod(sizes))))
        self.apply(
            "reduce_window", x, bound=bound, window_dimensions=sizes, window_strides=strides, padding=pads,
            base_dilations=base, window_dilations=hole, reducer=name,
        )  # fmt: skip

    def contraction(self) -> None:
        if self.choices.integer(0, 2):
            self.products()
        else:
            self.convolution()

    def whole_for_sum(self, x: Known, y: Known, count: Dim) -> tuple[Known, Known, float]:
        """Both bounded so that `count` products of them can be summed."""
        dtype = x.dtype
        if not dtype.is_floating:
            return x, y, largest(dtypes.int32 if dtype.bits <= 8 else dtype, whole=True)
        many = max(1, upper(count))
        if x.rough or y.rough:
            bound = x.bound * y.bound * many
            self.fits(dtype, bound, rough=True)
            return x, y, bound
        most = int((WHOLE_LIMIT[dtype.name] / many) ** 0.5)
        if most < 1:
            raise Unsuitable
        x, y = self.bounded(x, most), self.bounded(y, most)
        return x, y, x.bound * y.bound * many

    def products(self) -> None:
        x = self.value(lambda k: k.dtype.kind != "boolean")
        roles = [self.pick("bcff") for _ in x.shape]
        shape: list[Dim] = [x.shape[d] for d in range(x.rank) if roles[d] != "f"]
        shape += [dim(self.pick((1, 2, 3, 8, 17))) for _ in range(self.choices.integer(0, 2))]
        order = self.permutation(len(shape))
        y = self.of_shape(x.dtype, [shape[k] for k in order])
        used = [d for d in range(x.rank) if roles[d] != "f"]
        where = {d: order.index(n) for n, d in enumerate(used)}
        batch, inner = [d for d in used if roles[d] == "b"], [d for d in used if roles[d] == "c"]
        inner = [inner[k] for k in self.permutation(len(inner))]
        x, y, bound = self.whole_for_sum(x, y, product(x.shape[d] for d in inner))
        sides = ((batch, inner), ([where[d] for d in batch], [where[d] for d in inner]))
        attributes: dict[str, Any] = {
            f"{side}_{what}_dimensions": sides[n][m]
            for n, side in enumerate(("lhs", "rhs"))
            for m, what in enumerate(("batching", "contracting"))
        }
        swapped = bool(self.choices.integer(0, 1))
        if swapped:
            flipped = {"lhs": "rhs", "rhs": "lhs"}
            attributes = {flipped[name[:3]] + name[3:]: entry for name, entry in attributes.items()}
        result = [*(x.shape[d] for d in range(x.rank) if d not in inner)]
        if size_of([*result, *(e for e in y.shape if e not in shape[: len(used)])]) > self.largest:
            raise Unsuitable
        self.apply("dot_general", *((y, x) if swapped else (x, y)), bound=bound, **attributes)

    def of_shape(self, dtype: DType, shape: Sequence[Dim]) -> Known:
        """A value of this type and shape: one that is there, a constant, a broadcast one, or a new input."""
        found = [k for k in self.known if k.dtype == dtype and list(k.shape) == list(shape)]
        if found and self.choices.integer(0, 1):
            return self.pick(found)
        if all(extent.is_constant for extent in shape) and self.choices.integer(0, 1):
            return self.new_constant(dtype, [int(extent) for extent in shape])
        name = f"in{len(self.known)}.extra"
        made = Known(self.builder.input(name, dtype, *shape), largest(dtype))
        self.known.append(made)
        return made

    def convolution(self) -> None:
        x = self.value(lambda k: 2 <= k.rank <= 5 and k.dtype.kind != "boolean")
        rank, spatial = x.rank, x.rank - 2
        placed = self.permutation(rank) if self.chance(50) else list(range(rank))
        batch, features, *places = placed
        channels = x.shape[features].value
        groups = 1
        if channels and self.chance(50):
            groups = next(g for g in (self.pick((2, 3, channels)), 1) if channels % g == 0)
        outer = groups * self.pick((1, 2, 3))
        inner = x.shape[features] if groups == 1 else dim(channels or 0) // groups
        sizes = [self.pick((1, 2, 3)) for _ in places]
        hole = [self.pick((1, 1, 2)) for _ in places]
        base = [self.pick((1, 1, 1, 2)) if (x.shape[p].value or 0) > 0 else 1 for p in places]
        pads: list[tuple[int, int]] = []
        for place, size, gap in zip(places, sizes, hole, strict=True):
            need = (size - 1) * gap + 1
            if (x.shape[place].value or 0) >= need + 2 and self.chance(50):
                pads.append((self.choices.integer(-1, 2), self.choices.integer(-1, 2)))
            else:
                low = self.choices.integer(0, need)
                pads.append((low, need - low))
        kernel_order = self.permutation(rank) if self.chance(50) else list(range(rank))
        kernel_shape: list[Dim] = [dim(0)] * rank
        for where, extent in zip(kernel_order, (dim(outer), inner, *map(dim, sizes)), strict=True):
            kernel_shape[where] = extent
        if x.dtype.is_integer and x.dtype.bits > 8 and self.chance(50):
            raise Unsuitable
        kernel = self.of_shape(x.dtype, kernel_shape)
        x, kernel, bound = self.whole_for_sum(x, kernel, inner * int(np.prod(sizes, dtype=int)))
        outputs = self.permutation(rank) if self.chance(50) else list(range(rank))
        if size_of(x.shape) * outer > 4 * self.largest:
            raise Unsuitable
        self.apply(
            "convolution", x, kernel, bound=bound, window_strides=[self.pick((1, 1, 2)) for _ in places], padding=pads,
            lhs_dilation=base, rhs_dilation=hole, feature_group_count=groups,
            input_dimensions=[batch, features, *places], kernel_dimensions=kernel_order, output_dimensions=outputs,
        )  # fmt: skip
        assert spatial == len(places)

    def positions(self, extent: Dim, shape: Sequence[Dim]) -> Known:
        """Positions within a dimension: computed from data, or constants; some count from the end."""
        size = extent.value
        if size is None:
            if extent != dim("M"):
                raise Unsuitable
            size = 1
        if size == 0:
            raise Unsuitable
        dtype = self.pick((dtypes.int64, dtypes.int32, dtypes.int8, dtypes.uint8))
        if not all(e.is_constant for e in shape) or self.chance(50):
            found = self.of_shape(dtype, shape)
            divisor = self.constant(size, dtype)
            return self.apply("floor_remainder", found, divisor, bound=size)
        low = 0 if dtype.kind == "unsigned" else -size
        generator = np.random.default_rng(self.choices.integer(0, 99))
        array = generator.integers(low, size, tuple(int(e) for e in shape)).astype(dtype.numpy)
        return Known(self.builder.constant(array), size)

    def tuples(self, extents: Sequence[Dim], outer: Sequence[Dim]) -> Value:
        """Tuples of positions along the last dimension."""
        parts = [self.positions(extent, [*outer, dim(1)]) for extent in extents]
        wide = [self.apply("convert", part, bound=part.bound, dtype=dtypes.int64) for part in parts]
        if len(wide) == 1:
            return wide[0].value
        bound = max(part.bound for part in wide)
        return self.apply("concatenate", *wide, bound=bound, dimension=len(outer)).value

    def tuple_indexing(self, x: Known, gathers: bool) -> None:
        """Slices read or replaced at tuples of positions."""
        batch = self.choices.integer(0, min(1, x.rank - 1)) if gathers else 0
        depth = self.choices.integer(1, x.rank - batch)
        outer = [*x.shape[:batch], *(dim(self.pick((1, 2, 5, 0))) for _ in range(self.choices.integer(0, 1)))]
        shape = [*outer, *x.shape[batch + depth :]]
        if size_of(shape) > 4 * self.largest:
            raise Unsuitable
        where = self.tuples(x.shape[batch : batch + depth], outer)
        if gathers:
            self.apply("gather_nd", x, where, bound=x.bound, batch_dimensions=batch)
            return
        updates = self.of_shape(x.dtype, shape)
        if x.rough or updates.rough:
            raise Unsuitable
        name = self.pick(("replace", "maximum", "minimum"))
        self.apply("scatter_nd", x, where, updates, bound=max(x.bound, updates.bound), reducer=name)

    def indexing(self) -> None:
        x = self.value(lambda k: k.rank > 0)
        along = self.choices.integer(0, x.rank - 1)
        kind = self.choices.integer(0, 4)
        if kind > 2:
            self.tuple_indexing(x, gathers=kind == 3)
            return
        if kind == 0:
            shape = self.shape(2)
            if size_of([*shape, *x.shape]) > 4 * self.largest:
                raise Unsuitable
            self.apply("take", x, self.positions(x.shape[along], shape), bound=x.bound, dimension=along)
            return
        shape = [
            dim(self.pick((1, 2, 5))) if d == along else dim(self.choices.integer(0, e.value))
            if e.value is not None and self.chance(40) else e
            for d, e in enumerate(x.shape)
        ]  # fmt: skip
        where = self.positions(x.shape[along], shape)
        if kind == 1:
            self.apply("take_along_axis", x, where, bound=x.bound, dimension=along)
            return
        updates = self.of_shape(x.dtype, shape)
        if x.dtype.kind == "boolean":
            self.apply("scatter_along_axis", x, where, updates, bound=1, dimension=along, reducer="replace")
            return
        x, name, bound = self.reducer(x, ("replace", "sum", "maximum", "minimum", "product"), shape[along] + 1)
        if name == "replace":
            bound = max(x.bound, updates.bound)
        if x.rough or updates.rough:
            raise Unsuitable
        if x.dtype.is_floating:
            updates = self.bounded(updates, int(max(1, min(x.bound, 1 if name == "product" else x.bound))))
            bound = max(bound, (upper(shape[along]) + 1) * max(x.bound, updates.bound) if name == "sum" else bound)
            self.fits(x.dtype, bound, rough=False)
        self.apply("scatter_along_axis", x, where, updates, bound=bound, dimension=along, reducer=name)

    def source(self) -> None:
        kind = self.choices.integer(0, 3)
        if kind == 3:
            dtype = self.pick((dtypes.uint32, dtypes.uint64))
            key = self.constant([self.choices.integer(0, 2**32), 7], dtypes.uint64)
            counter = self.constant([self.choices.integer(0, 2**32)], dtypes.uint64)
            bits = self.builder.apply_one("counter_bits", key, counter, shape=tuple(self.shape(3)), dtype=dtype)
            self.operators.append("counter_bits")
            mask = self.builder.apply_one(
                "broadcast_in_dim", self.constant(63, dtype), shape=bits.tensor.shape, broadcast_dimensions=()
            )
            self.apply("and", bits, mask, bound=63)
        elif kind < 2:
            dtype = self.pick((*FLOATS, *INTEGERS))
            shape = self.shape(3) or [dim(5)]
            along = self.choices.integer(0, len(shape) - 1)
            bound = upper(shape[along])
            if dtype.is_floating:
                self.fits(dtype, bound, rough=False)
            self.apply("iota", bound=max(1, bound), shape=shape, dimension=along, dtype=dtype)
        elif self.symbolic:
            values = [dim("N") * 2 + 1, dim("M") // 2, dim("N") % 4, dim(-3)]
            count = self.choices.integer(0, 4)
            self.apply("dimension_values", bound=100, values=values[:count], shape=[count])


def random_graph(
    choices: Choices, nodes: int, *, special: bool, symbolic: bool = True, largest: int = 1500
) -> tuple[Graph, RandomGraph]:
    """A graph of about `nodes` operators, and what was drawn."""
    drawn = RandomGraph(choices, special=special, symbolic=symbolic, largest=largest)
    drawn.start(drawn.choices.integer(1, 3))
    for _ in range(nodes):
        drawn.grow()
    return drawn.finish(), drawn
