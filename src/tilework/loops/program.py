"""The nodes of a loop program. The tree is the schedule: its order is the order of execution.

Storage depth decides how long values are kept, compute depth how often they are recomputed. Nodes are immutable and
compared by identity, so that a rewrite can name the very node it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Literal, TypeAlias

from tilework.dims import Dim, IntLike, Loaded, Symbol, dim, product
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Constant, Expression, Index, Load, Parameter
from tilework.loops.expressions import walk as walk_expression

Scope = Literal["global", "shared", "register", "fragment"]
LoopKind = Literal[
    "serial", "parallel", "vectorized", "unrolled",
    "block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z", "warp",
]  # fmt: skip


@dataclass(frozen=True)
class Buffer:
    """A typed array in one memory scope, dense and row-major in `shape`; a layout is a buffer of another shape."""

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    scope: Scope = "global"

    @cached_property
    def strides(self) -> tuple[Dim, ...]:
        """Element strides per dimension."""
        found: list[Dim] = []
        step = dim(1)
        for extent in reversed(self.shape):
            found.append(step)
            step = step * extent
        return tuple(reversed(found))

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def bytes(self) -> Dim:
        return self.size * self.dtype.itemsize


def buffer(name: str, dtype: DType, *shape: IntLike, scope: Scope = "global") -> Buffer:
    """A buffer from plain integers, names or dims."""
    return Buffer(name, tuple(dim(d) for d in shape), dtype, scope)


@dataclass(frozen=True, eq=False)
class Reducer:
    """An associative, commutative combination of partial results with one or more components.

    `combine[c]` computes component c from the parameters `left` and `right` (names of `Parameter`s, one a component);
    `identity[c]` leaves it unchanged. `sum`, `product`, `maximum`, `minimum`, `and`, `or`, ... are built in
    (`loops.reducers`); users define others (argmax pairs, Welford). `replace` (last writer wins) is not relaxable.
    """

    name: str
    left: tuple[Parameter, ...]
    right: tuple[Parameter, ...]
    combine: tuple[Expression, ...]
    identity: tuple[Constant, ...]
    relaxable: bool = True
    """Whether its applications may be reordered and regrouped (unless numerics are strict)."""

    @property
    def arity(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class Access:
    """An element of a buffer that a computation writes."""

    buffer: str
    index: tuple[Dim, ...]


@dataclass(frozen=True, eq=False)
class Compute:
    """One statement: `targets = values`, or `targets = reducer(targets, values)`. Runs where every guard is >= 0.

    A reduction with `init` starts from it on the first iteration of its `reduction` variables (all of them 0), whether
    or not a guard that names one of them holds there; guards that name none of them apply to the start too.
    An index or guard may hold loaded elements: such an access is checked when it runs.
    """

    name: str
    targets: tuple[Access, ...]
    values: tuple[Expression, ...]
    reducer: Reducer | None = None
    init: tuple[Constant, ...] | None = None
    reduction: tuple[str, ...] = ()
    guards: tuple[Dim, ...] = ()
    accumulate: DType | None = None
    """The type in which partial results are kept, where it is not the target's."""

    @property
    def target(self) -> Access:
        """The only target of a statement that has one."""
        (only,) = self.targets
        return only

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """Every distinct load of its values."""
        return tuple(node for value in self.values for node in walk_expression(value) if isinstance(node, Load))

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """Every dim in it: guards, indices of targets and loads, and integers used as numbers."""
        found = [*self.guards, *(entry for target in self.targets for entry in target.index)]
        for value in self.values:
            for node in walk_expression(value):
                if isinstance(node, Load):
                    found.extend(node.index)
                elif isinstance(node, Index):
                    found.append(node.value)
        return tuple(found)

    @cached_property
    def loaded(self) -> tuple[Loaded, ...]:
        """The elements that its dims are made from."""
        return tuple(element for entry in self.dims if entry.terms for element in entry.loads())


@dataclass(frozen=True, eq=False)
class Prefetch:
    """Bring an element near; no effect on values. Runs where every guard is >= 0 and the element exists.

    `write`: it will be written. `once`: it will be read once and need not stay near afterwards.
    """

    name: str
    target: Access
    guards: tuple[Dim, ...] = ()
    write: bool = False
    once: bool = False


@dataclass(frozen=True, eq=False)
class Barrier:
    """All threads of a `scope` ("block", "warp", "grid") wait for each other; orders their accesses."""

    scope: str


@dataclass(frozen=True, eq=False)
class AsyncCopy:
    """An element copy that completes at a later `wait` for its `group`; otherwise like a `Compute` of one load."""

    name: str
    target: Access
    source: Access
    group: str
    guards: tuple[Dim, ...] = ()


@dataclass(frozen=True, eq=False)
class AsyncWait:
    """Wait until at most `pending` copies of `group` are outstanding."""

    group: str
    pending: int = 0


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """A machine instruction in place of the subtree that states its meaning. `body` is that meaning, and is run by the
    interpreter; code generators emit `instruction` (a name in the machine's tables).
    """

    instruction: str
    body: Node


@dataclass(frozen=True, eq=False)
class Loop:
    """`body` for `variable` from 0 to `extent` - 1. Variable names are unique in a program."""

    variable: str
    extent: Dim
    kind: LoopKind
    body: Node


@dataclass(frozen=True, eq=False)
class Storage:
    """A buffer that lives while `body` runs; its contents are undefined at the start of every life."""

    buffer: Buffer
    body: Node


@dataclass(frozen=True, eq=False)
class Sequence:
    """Children one after another. An empty sequence does nothing."""

    children: tuple[Node, ...]


Node: TypeAlias = Loop | Storage | Sequence | Compute | Prefetch | Barrier | AsyncCopy | AsyncWait | Intrinsic
Leaf: TypeAlias = Compute | Prefetch | Barrier | AsyncCopy | AsyncWait

BufferAccess = Literal["read", "write", "accumulate"]
"""`write`: every element that is written is written before it is read; `accumulate`: old contents matter too."""


@dataclass(frozen=True)
class Argument:
    """A buffer that the caller provides, and what the program does to it."""

    buffer: Buffer
    access: BufferAccess


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """A loop program: buffers the caller provides, symbols it depends on, and the tree."""

    name: str
    arguments: tuple[Argument, ...]
    body: Node
    symbols: tuple[Symbol, ...] = field(default=())

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        """Every buffer by name: arguments and storage. (Partitioning may repeat a storage node: equal buffers.)"""
        found = {argument.buffer.name: argument.buffer for argument in self.arguments}
        found.update((node.buffer.name, node.buffer) for node in walk(self.body) if isinstance(node, Storage))
        return found

    @cached_property
    def extents(self) -> dict[str, Dim]:
        """The extent of every loop, by variable."""
        return {node.variable: node.extent for node in walk(self.body) if isinstance(node, Loop)}

    @cached_property
    def reducers(self) -> dict[str, Reducer]:
        """Every reducer that a statement uses, by name."""
        return {n.reducer.name: n.reducer for n in walk(self.body) if isinstance(n, Compute) and n.reducer is not None}

    def with_body(self, body: Node) -> LoopProgram:
        return LoopProgram(self.name, self.arguments, body, self.symbols)

    def renamed(self, name: str) -> LoopProgram:
        return LoopProgram(name, self.arguments, self.body, self.symbols)


EMPTY = Sequence(())


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, in order."""
    if isinstance(node, Sequence):
        return node.children
    return (node.body,) if isinstance(node, (Loop, Storage, Intrinsic)) else ()


def sequence(*nodes: Node) -> Node:
    """Nodes one after another, nested sequences flattened; a single node stands alone."""
    flat: list[Node] = []
    for node in nodes:
        flat.extend(node.children if isinstance(node, Sequence) else (node,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def is_empty(node: Node) -> bool:
    """Whether a node does nothing: a sequence of none."""
    return isinstance(node, Sequence) and not node.children


def with_children(node: Node, nodes: tuple[Node, ...]) -> Node:
    """The node over other children; a loop or storage left empty is empty."""
    match node:
        case Sequence():
            return sequence(*nodes)
        case Loop():
            (body,) = nodes
            return EMPTY if is_empty(body) else Loop(node.variable, node.extent, node.kind, body)
        case Storage():
            (body,) = nodes
            return EMPTY if is_empty(body) else Storage(node.buffer, body)
        case Intrinsic():
            (body,) = nodes
            return EMPTY if is_empty(body) else replace(node, body=body)
        case _:
            return node


def walk(node: Node) -> Iterator[Node]:
    """Every node, parents before children, in order of execution."""
    return iter((node, *_below(node)))


def _below(node: Node) -> tuple[Node, ...]:
    """All nodes below one, in order. Kept with the node: trees do not change, and are walked over and over.

    A node that kept itself would be left to the search for cyclic garbage.
    """
    old = children(node)
    if not old:
        return ()
    found: tuple[Node, ...] | None = node.__dict__.get("_below")
    if found is None:
        nodes: list[Node] = []
        for child in old:
            nodes.append(child)
            nodes.extend(_below(child))
        found = node.__dict__["_below"] = tuple(nodes)
    return found


def _parents(root: Node) -> dict[int, Node | None]:
    """The node above each node of a tree, by identity (above its first occurrence); None: the root. Kept with that."""
    found: dict[int, Node | None] | None = root.__dict__.get("_parents")
    if found is None:
        found = {id(child): None for child in children(root)}
        for node in _below(root):
            for child in children(node):
                found.setdefault(id(child), node)
        root.__dict__["_parents"] = found
    return found


def statements(node: Node) -> Iterator[Compute]:
    """Every statement below a node, in order of execution."""
    return (found for found in walk(node) if isinstance(found, Compute))


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild bottom-up; `change` returns a node's replacement, `EMPTY` deletes it (and every loop left empty)."""
    old = children(node)
    if old:
        new = tuple([rewrite(child, change) for child in old])
        if new != old:  # nodes are compared by identity
            node = with_children(node, new)
            if is_empty(node):
                return node
    return change(node)


def replace_node(root: Node, old: Node, new: Node) -> Node:
    """The tree with the very node `old` replaced."""
    return _replaced(root, old, new) if old in walk(root) else root


def _replaced(root: Node, old: Node, new: Node) -> Node:
    """As `replace_node`, where `old` is known to be in the tree."""
    if root is old:
        return new
    if not isinstance(root, Sequence):
        return with_children(root, tuple(_replaced(child, old, new) for child in children(root)))
    return sequence(*(_replaced(child, old, new) if old in walk(child) else child for child in root.children))


def path(root: Node, target: Node) -> tuple[Node, ...]:
    """Nodes from the root down to `target` (both included); empty when it is not below the root."""
    above = _parents(root)
    found = [target]
    while (last := found[-1]) is not root:
        if id(last) not in above:
            return ()
        parent = above[id(last)]
        found.append(root if parent is None else parent)
    return tuple(reversed(found))
