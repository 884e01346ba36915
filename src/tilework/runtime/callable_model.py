"""`CallableModel`: the ways to call that all kinds of executables share, whatever a call of theirs does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tilework.runtime.context import Context
from tilework.runtime.ports import StepTime

if TYPE_CHECKING:
    from tilework.runtime.executable import Stepped
    from tilework.runtime.pending import PendingCall
    from tilework.runtime.profile import Profile


class CallableModel(ABC):
    """Something that is called with arrays, in a context."""

    @property
    @abstractmethod
    def context(self) -> Context:
        """Where its code, threads and memory live."""

    @abstractmethod
    def __call__(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run the model."""

    def step_times(self, *arrays: Any, **named: Any) -> tuple[tuple[Any, ...], tuple[StepTime, ...]]:
        """Run the model step by step: its outputs, and how long each step took. Raises as a call."""
        found = self.stepped(*arrays, **named)
        return found.outputs, found.times

    @abstractmethod
    def stepped(self, *arrays: Any, **named: Any) -> Stepped:
        """As `step_times`, and which executable served the call."""

    def run_async(self, *arrays: Any, **named: Any) -> PendingCall:
        """Run the model while Python goes on: returns at once, with something whose `result()` is the outputs.

        Calls of one context are made one after the other, in the order in which they were asked for, in one thread of
        the context; each uses all threads of the context, as a plain call does. Arguments are looked at when the call
        begins: leave them as they are until it is done, and whatever is wrong with them is raised by `result()`. Plain
        calls may be made meanwhile, and `run_async` asked of any thread.

        When the context is closed or the process ends, the call that runs is waited for and those that have not begun
        are given up. In the child of a fork, calls of the parent are lost (1753).

        Raises:
            UsageError: 1752, the context is closed.
            RunError: 1751, the operating system starts no thread.
        """
        return self.context.calls.submit(self, arrays, named)

    def profile(self, *arrays: Any, calls: int = 7, **named: Any) -> Profile:
        """How long each step of a call takes: medians over some calls that are run step by step, after one that warms
        up, each beside a call as a whole.

        The arguments are those of a call (an input that is called `calls` is given by position), and what a call
        changes in place is changed by each of the `2 * calls + 1`. Steps run one after another as they do in a call;
        starting each from Python takes some microseconds that a call does not spend.

        Raises:
            UsageError: 1002, `calls` is not a whole number of 1 or more.
            CallError, OutOfMemoryError, RunError: as a call.
        """
        from tilework.runtime.profile import profiled

        return profiled(self, arrays, named, calls)
