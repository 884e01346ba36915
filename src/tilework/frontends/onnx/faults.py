"""How the parts of the importer report what is wrong, so that one error can list everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilework.errors import Fault

if TYPE_CHECKING:
    from tilework.frontends.onnx.operand import Operand


class NodeFault(Exception):  # noqa: N818 - a carrier: the importer adds the place and lists all of them in one error
    """One thing that is wrong with the node, tensor or attribute at hand.

    `unknown`: operands that are known only when the model runs, and but for that nothing would be wrong.
    """

    def __init__(self, code: int, message: str, unknown: Sequence[Operand] = ()) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.unknown = tuple(unknown)

    def at(self, where: str) -> Fault:
        """The fault with its place."""
        return Fault(self.code, where, self.message)
