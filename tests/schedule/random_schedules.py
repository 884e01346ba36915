"""Random programs, random steps of every primitive, and a run that compares a schedule with its program bit for bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.errors import ScheduleError
from tilework.layout import blocked, parse_layout, permuted
from tilework.loops.interpret import interpret
from tilework.loops.parse import parse_program
from tilework.loops.program import Loop, LoopProgram, Storage, statements, walk
from tilework.loops.verify import verify
from tilework.numerics import numerics
from tilework.schedule.footprint import read_buffers
from tilework.schedule.primitive import Primitive
from tilework.schedule.primitives.transform_layout import TransformLayout
from tilework.schedule.schedule import Schedule
from tilework.schedule.trace import primitive_named, primitive_names

Generator = np.random.Generator

PROGRAMS: dict[str, str] = {
    "product": """
program product
  read a: float32[{A}, {C}]
  read b: float32[{C}, {B}]
  write c: float32[{A}, {B}]

  serial i < {A}
    serial j < {B}
      serial k < {C}
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
""",
    "epilogue": """
program epilogue
  read a: float32[{A}, {C}]
  read b: float32[{C}, {B}]
  read bias: float32[{B}]
  write d: float32[{A}, {B}]

  global c: float32[{A}, {B}]
  serial i < {A}
    serial j < {B}
      serial k < {C}
        c: c[i, j] += a[i, k] * b[k, j]  init 0.0 over k
  serial y < {A}
    serial x < {B}
      d: d[y, x] = maximum(c[y, x] + bias[x], 0.0)
""",
    "chain": """
program chain
  read x: float32[{A}, {B}]
  read y: float32[{B}]
  write out: float32[{A}, {B}]

  global t: float32[{A}, {B}]
  global u: float32[{A}, {B}]
  serial p < {A}
    serial q < {B}
      t: t[p, q] = x[p, q] + y[q]
  serial r < {A}
    serial s < {B}
      u: u[r, s] = t[r, s] * t[r, s]
  serial v < {A}
    serial w < {B}
      out: out[v, w] = u[v, w] - x[v, w]
""",
    "row_maximum": """
program row_maximum
  read x: float32[{A}, {B}]
  write out: float32[{A}]

  serial i < {A}
    serial k < {B}
      out: out[i] maximum= x[i, k] + 1.0  init -inf over k
""",
    "softmax": """
program softmax
  read x: float32[{A}, {B}]
  write out: float32[{A}, {B}]

  global m: float32[{A}]
  global s: float32[{A}]
  serial i < {A}
    serial k < {B}
      m: m[i] maximum= x[i, k]  init -inf over k
  serial i1 < {A}
    serial k1 < {B}
      s: s[i1] += x[i1, k1] - m[i1]  init 0.0 over k1
  serial i2 < {A}
    serial k2 < {B}
      out: out[i2, k2] = (x[i2, k2] - m[i2]) * s[i2]
""",
    "convolution": """
program convolution
  read x: float32[{A}, {B}]
  read w: float32[3]
  write out: float32[{A}, {B}]

  serial c < {A}
    serial i < {B}
      serial k < 3
        out: out[c, i] += x[c, i + k - 1] * w[k]  init 0.0 over k  where i + k - 1 >= 0 and {B} - i - k >= 0
""",
    "convolution_2d": """
program convolution_2d
  read x: float32[{A}, {B}]
  read w: float32[3, 2]
  write out: float32[{A}, {B}]

  serial y < {A}
    serial x_ < {B}
      serial k < 3
        serial l < 2
          out: out[y, x_] += x[y + k - 1, x_ + l] * w[k, l]  init 0.0 over k, l  where y + k - 1 >= 0 and \
{A} - y - k >= 0 and {B} - 1 - x_ - l >= 0
""",
    "padded_stages": """
program padded_stages
  read x: float32[{A}]
  write out: float32[{A}]

  global t: float32[{A}]
  serial p < {A}
    t: t[p] = x[p] * 2.0
  serial i < {A}
    serial k < 3
      out: out[i] += t[i + k - 1]  init 0.0 over k  where i + k - 1 >= 0 and {A} - i - k >= 0
""",
    "stencil": """
program stencil
  read x: float32[{A} + 4]
  write out: float32[{A}]

  global t: float32[{A} + 2]
  serial p < {A} + 2
    t: t[p] = x[p] + x[p + 1] * x[p + 2]
  serial i < {A}
    out: out[i] = t[i] - t[i + 1] + t[i + 2]
""",
    "stencil_2d": """
program stencil_2d
  read x: float32[{A} + 2, {B} + 1]
  write out: float32[{A}, {B}]

  global t: float32[{A} + 2, {B} + 1]
  serial p < {A} + 2
    serial q < {B} + 1
      t: t[p, q] = x[p, q] * x[p, q] - 1.0
  serial i < {A}
    serial j < {B}
      out: out[i, j] = t[i, j] + t[i + 1, j] - t[i + 2, j + 1]
""",
    "blur": """
program blur
  read x: float32[{A} + 2, {B} + 2]
  write out: float32[{A}, {B}]

  global h: float32[{A} + 2, {B}]
  serial p < {A} + 2
    serial q < {B}
      serial k < 3
        h: h[p, q] += x[p, q + k]  init 0.0 over k
  serial i < {A}
    serial j < {B}
      serial l < 3
        out: out[i, j] += h[i + l, j]  init 0.0 over l
""",
    "scan": """
program scan
  read x: float32[{A}, {B}]
  write out: float32[{A}, {B}]

  serial i < {A}
    register p: float32[1]
    s.init: p[0] = 0.0
    serial k < {B}
      s.step: p[0] += x[i, k]  over k
      s: out[i, k] = p[0]
""",
    "recurrence": """
program recurrence
  read x: float32[{A}]
  accumulate h: float32[{A} + 1]
  write out: float32[{A}]

  serial i < {A}
    h: h[i + 1] = x[i] - h[i]
  serial o < {A}
    out: out[o] = h[o] + 1.0
""",
    "prefix_stage": """
program prefix_stage
  read x: float32[{A}]
  write out: float32[{A}]

  global t: float32[{A}]
  block
    register c: float32[1]
    c: c[0] = 0.0
    serial p < {A}
      t.step: c[0] += x[p]  over p
      t: t[p] = c[0]
  serial i < {A}
    out: out[i] = t[i] * 2.0
""",
    "scatter": """
program scatter
  read x: float32[{A}, {B}]
  read at: int32[{A}]
  accumulate out: float32[7, {B}]

  serial i < {A}
    serial j < {B}
      out: out[at[i], j] += x[i, j]  over i
""",
    "gather": """
program gather
  read x: float32[7, {B}]
  read at: int32[{A}]
  write out: float32[{A}, {B}]

  global t: float32[{A}, {B}]
  serial i < {A}
    serial j < {B}
      t: t[i, j] = x[at[i], j] * 3.0
  serial p < {A}
    serial q < {B}
      out: out[p, q] = t[p, q] + 1.0
""",
    "argmax": """
program argmax
  read x: float32[{A}, {B}]
  write best: float32[{A}]
  write where_: int64[{A}]
  reducer later (lv: float32, li: int64) (rv: float32, ri: int64)
    combine (maximum(lv, rv), select(equal(lv, rv), minimum(li, ri), select(greater(lv, rv), li, ri)))
    identity (-inf, 9223372036854775807)

  serial i < {A}
    serial k < {B}
      best: (best[i], where_[i]) later= (x[i, k], index(k))  init (-inf, 9223372036854775807) over k
""",
    "apart": """
program apart
  read a: float32[{A}, {C}]
  write c: float32[{A}]
  write d: float32[{A}]

  serial i < {A}
    c.init: c[i] = 0.0
    serial k < {C}
      c: c[i] += a[i, k]  over k
  serial y < {A}
    d: d[y] = c[y] * 2.0
""",
    "group": """
program grouped
  read a: float32[{A}, {C}]
  write out: float32[{A}]

  global c: float32[{A}]
  serial i < {A}
    c.init: c[i] = 1.0
    serial k < {C}
      c: c[i] += a[i, k]  over k
  serial y < {A}
    out: out[y] = c[y] - 2.0
""",
    "overwritten": """
program overwritten
  read x: float32[{A}]
  accumulate y: float32[{A}]
  write out: float32[{A}]

  global t: float32[{A}]
  serial p < {A}
    t: t[p] = y[p] + x[p]
  serial q < {A}
    y: y[q] = x[q] * 3.0
  serial r < {A}
    out: out[r] = t[r] * y[r]
""",
    "skewed": """
program skewed
  read x: float32[{A}, {B}]
  accumulate c: float32[{A} + {B}]

  serial i < {A}
    serial j < {B}
      c: c[i + j] += x[i, j]
""",
    "repeated": """
program repeated
  read x: float32[{A}, {B}]
  write c: float32[{A}]

  serial p < 3
    serial i < {A}
      serial k < {B}
        c: c[i] += x[i, k] + index(p, float32)  init 0.0 over k
""",
    "tiled_temporary": """
program tiled_temporary
  read x: float32[{A}, {B}]
  write out: float32[{A}, {B}]

  global t: float32[{A}, {B}]
  serial i < {A}
    serial j < {B}
      t: t[i, j] = x[i, j] - 1.0
    serial k < {B}
      out: out[i, k] = t[i, k] * t[i, k]
""",
    "groups": """
program groups
  read a: float32[{A}, 2]
  read b: float32[{B}, 4, 2]
  write c: float32[{A}, {B}, 4]

  serial i < {A}
    serial j < {B}
      serial k < 4
        c.init: c[i, j, k] = 0.0
    serial p < {B}
      serial l < 4
        serial g < 2
          c: c[i, p, l] += a[i, g] * b[p, l, g]  over g
""",
    "pieces": """
program pieces
  read a: float32[{A}, 4]
  read b: float32[4]
  write c: float32[{A}]
  write d: float32[{A}, 4]

  serial i < {A}
    c.init: c[i] = 0.0
    serial k < 2
      serial l < 2
        c: c[i] += a[i, 2*k + l] * b[2*k + l]  over k, l
  serial p < {A}
    serial q < 2
      serial r < 2
        d: d[p, 2*q + r] = a[p, 2*q + r]
""",
    "triangle": """
program triangle
  read x: float32[{A}, {A}]
  accumulate out: float32[{A}]

  serial i < {A}
    serial k < i + 1
      out: out[i] += x[i, k]
""",
}
SYMBOLIC = (
    "product",
    "epilogue",
    "chain",
    "row_maximum",
    "convolution",
    "stencil",
    "blur",
    "apart",
    "group",
    "softmax",
    "padded_stages",
    "skewed",
    "overwritten",
)


FITTING = {
    "tensorize": ("pieces", "groups"),
    "store_at": ("stencil", "stencil_2d", "blur", "padded_stages"),
    "compute_at": ("stencil", "stencil_2d", "blur", "padded_stages", "chain", "group", "softmax"),
    "rfactor": ("product", "row_maximum", "convolution", "convolution_2d"),
    "fuse_into_store": ("chain", "gather", "epilogue", "tiled_temporary"),
    "reverse_compute_at": ("chain", "gather", "epilogue", "group", "apart"),
    "compute_inline": ("chain", "stencil", "gather", "tiled_temporary", "overwritten"),
    "set_scope": ("chain", "tiled_temporary", "epilogue", "group"),
}
"""Programs that some primitives are at home in."""


@dataclass(frozen=True)
class Case:
    """A program and the values of its symbols to run it with."""

    program: LoopProgram
    symbols: tuple[Mapping[str, int], ...]


def case(name: str, rng: Generator, symbolic: bool = False) -> Case:
    """A program by name, of random small sizes; `symbolic`: sizes A and C are known only at run time."""
    sizes = {"A": int(rng.integers(1, 8)), "B": int(rng.integers(1, 8)), "C": int(rng.integers(1, 6))}
    if not symbolic:
        return Case(parse_program(PROGRAMS[name].format(**sizes).lstrip()), ({},))
    text = PROGRAMS[name].format(A="N", B=sizes["B"], C="K").lstrip()
    lowest = 0 if name in ("apart", "group") else 1
    lines = text.splitlines()
    lines[1:1] = ["  symbol N in 1..", f"  symbol K in {lowest}.."]
    program = parse_program("\n".join(lines) + "\n")
    values = tuple(
        {"N": int(n), "K": int(k)} for n, k in zip(rng.integers(1, 12, 3), rng.integers(lowest, 7, 3), strict=True)
    )
    return Case(program, values)


def arrays_for(program: LoopProgram, symbols: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Arguments filled with small integers; indices stay in range."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for argument in program.arguments:
        shape = [int(extent.evaluate(symbols)) for extent in argument.buffer.shape]
        low, high = (0, 7) if argument.buffer.dtype.is_integer else (-3, 4)
        found[argument.buffer.name] = rng.integers(low, high, shape).astype(argument.buffer.dtype.numpy)
    return found


def results(program: LoopProgram, symbols: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Every argument after a run."""
    arrays = arrays_for(program, symbols, seed)
    interpret(program, arrays, symbols, seed=seed)
    return arrays


def packed(found: Case, schedule: Schedule, symbols: Mapping[str, int], seed: int) -> dict[str, Any]:
    """The arguments of the scheduled program: those of the program, in the layouts that the schedule asks for."""
    arrays = arrays_for(found.program, symbols, seed)
    for step in schedule.trace:
        if isinstance(step, TransformLayout) and step.buffer in arrays:
            arrays[step.buffer] = parse_layout(step.layout).pack(arrays[step.buffer])
    return arrays


def compare(found: Case, schedule: Schedule, seed: int) -> None:
    """Assert that the scheduled program leaves the same bits in every result."""
    for symbols in found.symbols:
        expected, actual = results(found.program, symbols, seed), packed(found, schedule, symbols, seed)
        interpret(schedule.program, actual, symbols, seed=seed)
        for argument in found.program.arguments:
            name = argument.buffer.name
            if argument.access != "read":
                np.testing.assert_array_equal(expected[name], actual[name], err_msg=f"{name} after {schedule.trace}")


class Drawer:
    """Draws steps of every primitive, sensible ones and others, for the program as it is."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._count = 0

    def step(self, program: LoopProgram, name: str) -> Primitive:
        """A random step of one primitive."""
        rng = self._rng
        loops = [n for n in walk(program.body) if isinstance(n, Loop)]
        variables = [n.variable for n in loops] or ["none"]
        stages = [s.name for s in statements(program.body)]
        temporaries = [n.buffer.name for n in walk(program.body) if isinstance(n, Storage)]
        buffers = list(program.buffers)
        self._count += 1

        def pick(options: list[str]) -> str:
            return str(rng.choice(options)) if options else "none"

        scope = str(rng.choice(["global", "global", "register", "shared"]))
        loop, fresh = pick(variables), f"n{self._count}"
        make: dict[str, Callable[[], tuple[Any, ...]]] = {
            "split": lambda: (loop, int(rng.integers(1, 5))),
            "reorder": lambda: self._order(loops),
            "fuse": lambda: self._pair(loops),
            "tile": lambda: (*self._pair(loops), int(rng.integers(1, 4)), int(rng.integers(1, 4))),
            "unroll": lambda: (loop,),
            "fission": lambda: (loop,),
            "vectorize": lambda: (loop,),
            "parallel": lambda: (loop,),
            "compute_inline": lambda: (pick(stages),),
            "cache_write": lambda: (
                *self._place(program, stages),
                fresh,
                self._axes(program, stages),
                scope,
                pick(["identity", "target"]),
            ),
            "rfactor": lambda: (*self._place(program, stages), fresh, self._axes(program, stages), scope),
            "cache_read": lambda: (pick(buffers), pick(["", *variables]), fresh, scope),
            "transform_layout": lambda: self._layout(program, pick(buffers)),
            "decompose_reduction": lambda: (pick(stages),),
            "prefetch": lambda: self._prefetch(program, stages, buffers, loop),
            "compute_at": lambda: self._producer(program, stages, variables),
            "store_at": lambda: (pick(temporaries or buffers), pick(["", *variables])),
            "reverse_compute_at": lambda: self._consumer(program, stages, variables, False),
            "fuse_into_store": lambda: self._consumer(program, stages, stages, True),
            "set_scope": lambda: (pick(temporaries or buffers), scope, pick(["", *variables])),
            "partition": lambda: (pick(["", *variables]), int(rng.choice([50, 2000])), pick(["cut", "whole"])),
            "tensorize": lambda: self._instruction(loops, variables),
        }
        return primitive_named(name)(*make[name]())

    def _instruction(self, loops: list[Loop], variables: list[str]) -> tuple[str, str]:
        nests = [n.variable for n in loops if n.extent == 4 and isinstance(n.body, Loop)]
        if nests and self._rng.random() < 0.7:
            return str(self._rng.choice(nests)), "dot"
        single = [n.variable for n in loops if n.extent == 2 and not isinstance(n.body, Loop)]
        return str(self._rng.choice(single or variables)), str(self._rng.choice(["multiply_add", "copy"]))

    def _order(self, loops: list[Loop]) -> tuple[str, ...]:
        names = [n.variable for n in loops] or ["none"]
        if loops and self._rng.random() < 0.7:
            chain = [loops[int(self._rng.integers(len(loops)))]]
            while isinstance(chain[-1].body, Loop):
                chain.append(chain[-1].body)
            names = [n.variable for n in chain]
        return tuple(map(str, self._rng.permutation(names)[: self._rng.integers(2, 5)]))

    def _pair(self, loops: list[Loop]) -> tuple[str, str]:
        nested = [(n.variable, n.body.variable) for n in loops if isinstance(n.body, Loop)]
        if nested and self._rng.random() < 0.7:
            return nested[int(self._rng.integers(len(nested)))]
        names = [n.variable for n in loops] or ["none"]
        return str(self._rng.choice(names)), str(self._rng.choice(names))

    def _prefetch(self, program: LoopProgram, stages: list[str], buffers: list[str], loop: str) -> tuple[Any, ...]:
        """What a statement stores, or what it loads some iterations later."""
        stage, _ = self._place(program, stages)
        found = next((s for s in statements(program.body) if s.name == stage), None)
        loaded = sorted(read_buffers(found)) if found is not None else buffers
        if not loaded or self._rng.random() < 0.5:
            return stage, loop
        return stage, loop, str(self._rng.choice(loaded)), int(self._rng.integers(0, 3))

    def _place(self, program: LoopProgram, stages: list[str]) -> tuple[str, str]:
        stage = str(self._rng.choice(stages)) if stages else "none"
        found = next((s for s in statements(program.body) if s.name == stage), None)
        around = [] if found is None else [n.variable for n in Schedule(program).setting.enclosing(found)]
        return stage, str(self._rng.choice(["", *around]))

    def _producer(self, program: LoopProgram, stages: list[str], variables: list[str]) -> tuple[str, str]:
        """A statement and, mostly, a loop around something that reads what it writes."""
        every = list(statements(program.body))
        pairs = [(w, r) for w in every for r in every if w is not r and {t.buffer for t in w.targets} & read_buffers(r)]
        if pairs and self._rng.random() < 0.8:
            writer, reader = pairs[int(self._rng.integers(len(pairs)))]
            around = [n.variable for n in Schedule(program).setting.enclosing(reader)]
            if around:
                return writer.name, str(self._rng.choice(around))
        return str(self._rng.choice(stages or ["none"])), str(self._rng.choice(variables))

    def _consumer(self, program: LoopProgram, stages: list[str], places: list[str], statement: bool) -> tuple[str, str]:
        """A statement and, mostly, one that writes what it reads, or a loop around that."""
        every = list(statements(program.body))
        pairs = [(w, r) for w in every for r in every if w is not r and {t.buffer for t in w.targets} & read_buffers(r)]
        if pairs and self._rng.random() < 0.8:
            writer, reader = pairs[int(self._rng.integers(len(pairs)))]
            around = [writer.name] if statement else [n.variable for n in Schedule(program).setting.enclosing(writer)]
            if around:
                return reader.name, str(self._rng.choice(around))
        return str(self._rng.choice(stages or ["none"])), str(self._rng.choice(places or ["none"]))

    def _axes(self, program: LoopProgram, stages: list[str]) -> tuple[str, ...]:
        reduced = [v for s in statements(program.body) if s.name in stages for v in s.reduction]
        return tuple(v for v in dict.fromkeys(reduced) if self._rng.random() < 0.4)

    def _layout(self, program: LoopProgram, name: str) -> tuple[str, str]:
        found = program.buffers.get(name)
        rank = len(found.shape) if found is not None else 1
        if not rank or (rank > 1 and self._rng.random() < 0.5):
            return name, str(permuted(tuple(map(int, self._rng.permutation(rank)))))
        return name, str(blocked(rank, ((int(self._rng.integers(rank)), int(self._rng.integers(2, 5))),)))


class Toy:
    """A machine whose instructions are small: what tensorize is tested with."""

    vector_bits = 128
    vector_registers = 16

    def intrinsic(self, name: str) -> LoopProgram | None:
        text = {
            "multiply_add": """
program multiply_add
  read p: float32[2]
  read q: float32[2]
  accumulate r: float32[1]

  serial l < 2
    s: r[0] += p[l] * q[l]
""",
            "copy": """
program moves
  read p: float32[2]
  write r: float32[2]

  serial l < 2
    s: r[l] = p[l]
""",
            "dot": """
program dot_product
  read p: float32[2]
  read q: float32[4, 2]
  accumulate r: float32[4]

  vectorized l < 4
    serial g < 2
      s: r[l] += p[g] * q[l, g]
""",
            "move_four": """
program moves
  read p: float32[4]
  write r: float32[4]

  vectorized l < 4
    s: r[l] = p[l]
""",
        }.get(name)
        return None if text is None else parse_program(text.lstrip())

    def exact(self, name: str) -> bool:
        return name not in ("multiply_add", "dot")


def random_schedule(
    seed: int, counts: Counter[tuple[str, bool]], steps: int = 14, focus: str = ""
) -> tuple[Case, Schedule]:
    """A random program under a random legal schedule; `counts` gathers how often each primitive was legal or not.

    `focus`: the primitive that is drawn more often than others (without it, each in turn).
    """
    rng = np.random.default_rng(seed)
    symbolic = seed % 4 == 0
    every = primitive_names()
    focus = focus or every[seed // 2 % len(every)]
    names = SYMBOLIC if symbolic else FITTING[focus] if seed % 2 and focus in FITTING else tuple(PROGRAMS)
    found = case(str(rng.choice(names)), rng, symbolic)
    schedule = Schedule(found.program, Toy(), numerics(str(rng.choice(["strict", "default"]))))
    drawer = Drawer(rng)
    for position in range(steps):
        name = focus if rng.random() < 0.3 else str(rng.choice(every))
        if focus == "store_at" and position < 4:
            name = "compute_at"
        try:
            step = drawer.step(schedule.program, name)
            after = schedule.apply(step)
        except ScheduleError:
            counts[name, False] += 1
            continue
        counts[name, True] += 1
        verify(after.program)
        if sum(1 for _ in walk(after.program.body)) < 300:
            schedule = after
    return found, schedule
