"""The text form of a dim is read back."""

from __future__ import annotations

import ast

from tilework.dims.polynomial import Dim, dim, extreme, loaded
from tilework.errors import TileworkError, UsageError


def parse_dim(text: str) -> Dim:
    """Read what `str(dim)` prints; raises `UsageError` 1004."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _from_ast(tree.body)
    except TileworkError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(1004, f"{text!r} is not a symbolic integer ({error})") from None


def _from_ast(node: ast.expr) -> Dim:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return dim(value)
        case ast.Name(id=name):
            return dim(name)
        case ast.Attribute():
            return dim(_dotted(node))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_from_ast(operand)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _from_ast(left), _from_ast(right)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv():
                    return a // b
                case ast.Mod():
                    return a % b
                case _:
                    pass
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=arguments, keywords=[]) if arguments:
            return extreme(name, [_from_ast(a) for a in arguments])
        case ast.Subscript(value=buffer, slice=index):
            entries = index.elts if isinstance(index, ast.Tuple) else [index]
            return loaded(_dotted(buffer), [_from_ast(i) for i in entries])
        case _:
            pass
    raise UsageError(1004, f"{ast.unparse(node)!r} is no part of a symbolic integer")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        part = node.attr
        return f"{_dotted(node.value)}.{part}"
    raise UsageError(1004, f"{ast.unparse(node)!r} is no name")
