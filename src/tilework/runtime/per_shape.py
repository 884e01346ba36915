"""`PerShape`: a model whose very graph depends on its sizes; each combination of shapes is compiled for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilework.errors import CallError, TileworkError, UsageError
from tilework.graph.types import TensorType
from tilework.runtime.executable import Executable, Port
from tilework.runtime.variants import ShapeVariants, shapes_of

if TYPE_CHECKING:
    from tilework.plan.explanation import Explanation


class PerShape:
    """Called like an `Executable`; compiles at the first call with new shapes (some are kept, see `variants`).

    What describes one compilation (`outputs`, `plan`, `explain`) is that of the last call's executable.
    """

    def __init__(
        self,
        inputs: tuple[tuple[str, TensorType], ...],
        reason: TileworkError,
        compile_for: Callable[[Mapping[str, tuple[int, ...]]], Executable],
    ) -> None:
        """`inputs`: names and types as the model declares them; `reason`: why one executable cannot serve all sizes."""
        self.inputs = tuple(Port(name, kind) for name, kind in inputs)
        self.reason = reason
        self.variants = ShapeVariants(compile_for)
        self._last: Executable | None = None

    def __call__(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run the model. Raises as an `Executable`, and as `tilework.compile` for new shapes."""
        return self._for(arrays, named)(*arrays, **named)

    def step_times(self, *arrays: Any, **named: Any) -> Any:
        """As `Executable.step_times`."""
        return self._for(arrays, named).step_times(*arrays, **named)

    def _for(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Executable:
        names = tuple(port.name for port in self.inputs)
        unknown = [name for name in named if name not in names]
        if unknown or len(arrays) + len(named) != len(names) or any(name in names[: len(arrays)] for name in named):
            given = f"{len(arrays)} by position and {', '.join(named) or 'none'} by name"
            raise CallError(1701, f"the inputs are {', '.join(names)}; given are {given}")
        ordered = (*arrays, *(named[name] for name in names[len(arrays) :]))
        found = self._last = self.variants(shapes_of(names, ordered))
        return found

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
    def copies(self) -> Mapping[tuple[str, str], int]:
        """How often the last call's executable converted or copied arguments."""
        return self.current.copies

    def explain(self) -> Explanation:
        """What was decided for the shapes of the last call."""
        return self.current.explain()
