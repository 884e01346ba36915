"""`check_outputs`: outputs that are there already, beside those of another engine on the same inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilework.fast_dataclass import dataclass
from tilework.peers.arrays import flattened, save
from tilework.peers.engine import Task
from tilework.peers.outputs import Compared, compare
from tilework.peers.process import EngineFailedError, EngineProcess

MOST_LINES = 12


@dataclass(frozen=True)
class Checked:
    """Our outputs beside those of the engine `name`, or why there are none of its (`skipped`)."""

    name: str
    outputs: tuple[Compared, ...] = ()
    skipped: str = ""

    @property
    def equal(self) -> bool:
        """Whether every output counts as equal; false where the engine gave none."""
        return not self.skipped and all(one.equal for one in self.outputs)

    def as_json(self) -> dict[str, Any]:
        """The same for JSON."""
        if self.skipped:
            return {"skipped": self.skipped}
        return {"equal": self.equal, "outputs": {one.name: one.as_json() for one in self.outputs}}

    def lines(self) -> list[str]:
        """The same for people: of very many arrays, such as those of sequences, the ones nearest to what is allowed."""
        shown = self.outputs
        if len(shown) > MOST_LINES:
            shown = tuple(sorted(shown, key=lambda one: -one.difference / max(one.allowed, 1e-300))[:MOST_LINES])
        found = [f"beside {self.name}: {one}" for one in shown]
        if len(shown) < len(self.outputs):
            equal = sum(one.equal for one in self.outputs)
            found.append(f"beside {self.name}: of {len(self.outputs)} arrays, {equal} are equal")
        return found


def check_outputs(name: str, task: Task, outputs: Mapping[str, object]) -> Checked:
    """Let the engine `name` open and run the task's model in a process of its own, and compare.

    Raises `RunError` 1761 where no process can be started, `OSError` where there is no room for the arrays.
    """
    with tempfile.TemporaryDirectory(prefix="tilework-") as place:
        folder = Path(place)
        described = save(folder / "inputs.npz", task.inputs)
        try:
            with EngineProcess(name, task, folder / "inputs.npz", described) as engine:
                theirs = engine.outputs(folder / "outputs.npz")
        except EngineFailedError as error:
            return Checked(name, skipped=error.reason)
    ours = dict(pair for output, value in outputs.items() for pair in flattened(output, value))
    return Checked(name, compare(ours, theirs))
