"""`PerShape`: a model whose very graph depends on sizes or on what inputs hold: each combination has its own code.

Axes, pads and shapes that a caller passes are such inputs. Inputs with many numbers are never taken for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.errors import CallError, FileFormatError, FrontendError, TileworkError, UsageError
from tilework.graph.types import OpaqueType, TensorType
from tilework.runtime.callable_model import CallableModel
from tilework.runtime.context import Context, default_context
from tilework.runtime.executable import Executable, Stepped
from tilework.runtime.overriding import Overriding
from tilework.runtime.ports import Port, arguments_by_name
from tilework.runtime.variants import Array, CompileFor, ShapeVariants, shapes_of

if TYPE_CHECKING:
    from tilework.plan.explanation import Explanation
    from tilework.plan.plan import Plan


MOST_INTEGERS, MOST_NUMBERS = 4096, 64
"""Elements up to which an input of integers, or of other numbers, may decide what is compiled."""


class PerShape(CallableModel):
    """Called like an `Executable`; compiles at the first call with new shapes, or new values of the inputs that decide
    (some are kept, see `variants`).

    What describes one compilation (`outputs`, `plan`, `explain`) is that of the last call's executable.
    """

    def __init__(
        self,
        inputs: tuple[tuple[str, TensorType | OpaqueType], ...],
        reason: TileworkError,
        compile_for: CompileFor,
        context: Context | None = None,
        overriding: Overriding | None = None,
    ) -> None:
        """`inputs`: names and types as the model declares them; `reason`: why one executable cannot serve all calls;
        `overriding`: what serves calls that give initialisers a value.
        """
        self._context = context
        self.overriding = overriding
        self.inputs = tuple(Port(name, kind) for name, kind in inputs)
        self.reason = reason
        self.variants = ShapeVariants(compile_for)
        self._last: Executable | None = None
        # with known extents the values that seemed to be missing may not be needed: they are asked for as it turns out,
        # since a call with other values of what decides compiles anew
        fixed = all(extent.is_constant for _, kind in inputs if isinstance(kind, TensorType) for extent in kind.shape)
        first = reason.decided_by if fixed and isinstance(reason, FrontendError) else ()
        self._deciding: dict[str, None] = dict.fromkeys(first)

    def __call__(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run the model. Raises as an `Executable`, and as `tilework.compile` for new shapes."""
        return self.executable_for(arrays, named)(*arrays, **named)

    def stepped(self, *arrays: Any, **named: Any) -> Stepped:
        """As `Executable.stepped`."""
        return self.executable_for(arrays, named).stepped(*arrays, **named)

    def trim(self) -> None:
        """Give back the memory of states that are not in use, of what was compiled for every combination kept."""
        for executable in self.variants.executables:
            executable.trim()

    def save(self, path: object) -> None:
        """Raises `FileFormatError` 1905: what is compiled for each call is in no file."""
        text = "it is compiled for the shapes of each call, so no file can hold it"
        raise FileFormatError(1905, text, where=str(path), hint="fix its shapes: `shapes=`, or --shape")

    def executable_for(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Executable:
        """What runs a call with these arguments, compiled where it is the first of its kind. Raises as a call."""
        other = self.overriding.serving(named) if named and self.overriding is not None else None
        if other is not None:
            self._last = other.executable_for(arrays, named) if isinstance(other, PerShape) else other
            return self._last
        given = arguments_by_name(self.inputs, arrays, named)
        shapes = shapes_of(tuple(given), tuple(given.values()))
        kinds = {port.name: port.type for port in self.inputs if isinstance(port.type, TensorType)}
        values: dict[str, Array] = {}
        while True:
            for name in self._deciding:
                if name not in values and _may_decide(array := _array(name, given[name], kinds[name])):
                    values[name] = array
            try:
                found = self._last = self.variants(shapes, values)
            except FrontendError as error:
                if not any(name not in self._deciding for name in error.decided_by):
                    raise
                self._deciding |= dict.fromkeys(error.decided_by)
            else:
                return found

    @property
    def context(self) -> Context:
        return self._context if self._context is not None else default_context()

    @property
    def overridable(self) -> tuple[Port, ...]:
        """As `Executable.overridable`."""
        return self.overriding.ports if self.overriding is not None else ()

    @property
    def deciding(self) -> tuple[str, ...]:
        """Names of the inputs whose values decide what is compiled, as far as calls have shown."""
        return tuple(self._deciding)

    # -- of the last call's executable ---------------------------------------------------------------------------------
    @property
    def current(self) -> Executable:
        """The executable of the last call. Raises `UsageError` 1002 before the first."""
        if self._last is None:
            raise UsageError(
                1002, f"this model is compiled when it is first called ({self.reason.message})",
                hint="call it once, or compile with `shapes`",
            )  # fmt: skip
        return self._last

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs, with the extents of the last call."""
        return self.current.outputs

    @property
    def plan(self) -> Any:
        """The plan of the last call's executable."""
        return self.current.plan

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the last call's executable."""
        return self.current.plans

    @property
    def copies(self) -> Mapping[tuple[str, str], int]:
        """How often the last call's executable converted or copied arguments."""
        return self.current.copies

    def explain(self) -> Explanation:
        """What was decided for the shapes of the last call."""
        return self.current.explain()


def _array(name: str, argument: object, kind: TensorType) -> Array:
    """What an input that decides is given. Raises `CallError` 1702 for another element type, 1709 for no array."""
    try:
        array: Array = np.asarray(argument)
        if not hasattr(argument, "dtype"):
            array = array.astype(kind.dtype.numpy, casting="same_kind")
    except (TypeError, ValueError) as problem:
        raise CallError(1709, f"input {name}: a {type(argument).__name__} is no array: {problem}", where=name) from None
    if array.dtype != kind.dtype.numpy:
        raise CallError(1702, f"input {name} is {kind.dtype}, the argument {array.dtype.name}", where=name)
    text = f"input {name} is {kind}, the argument has the shape {array.shape}"
    if array.ndim != kind.rank:
        raise CallError(1704, text, where=name)
    if any(e.is_constant and e != s for e, s in zip(kind.shape, array.shape, strict=True)):
        raise CallError(1705, text, where=name)
    return array


def _may_decide(array: Array) -> bool:
    return array.size <= (MOST_INTEGERS if array.dtype.kind in "biu" else MOST_NUMBERS)
