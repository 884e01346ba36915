"""How the parts of the importer report what is wrong, so that one error can list everything."""

from __future__ import annotations

from tilework.errors import Fault


class NodeFault(Exception):  # noqa: N818 - a carrier: the importer adds the place and lists all of them in one error
    """One thing that is wrong with the node, tensor or attribute at hand."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def at(self, where: str) -> Fault:
        """The fault with its place."""
        return Fault(self.code, where, self.message)
