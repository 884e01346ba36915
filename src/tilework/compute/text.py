"""Computations as a person would write them.

computation matmul: a: float32[M, K], b: float32[K, N] -> c: float32[M, N]
  c[i, j] = sum over k < K of a[i, k] * b[k, j]  from 0.0  for i < M, j < N
"""

from __future__ import annotations

from tilework.compute.notation import Axis, Computation, Stage
from tilework.loops.expressions import Constant
from tilework.loops.program import Buffer
from tilework.loops.reducers import is_built_in
from tilework.loops.text import expression_text, reducer_lines, values_text
from tilework.loops.words import dim_text, index_text, name_text


def computation_text(computation: Computation) -> str:
    """The text of a computation, for people: one line a stage, after the lines of what it shares."""
    inputs, outputs = (", ".join(map(_declared, side)) for side in (computation.inputs, computation.outputs))
    lines = [f"computation {name_text(computation.name)}: {inputs} -> {outputs}"]
    lines += [f"  symbol {symbol}" for symbol in computation.symbols]
    lines += [f"  temporary {_declared(buffer)}" for buffer in computation.temporaries]
    known: set[str] = set()
    for stage in computation.stages:
        reducer = stage.reducer
        if reducer is not None and not is_built_in(reducer) and reducer.name not in known:
            known.add(reducer.name)
            lines += ["  " + line for line in reducer_lines(reducer)]
        lines += ["  " + line for line in stage_lines(stage)]
    return "\n".join(lines) + "\n"


def stage_lines(stage: Stage) -> list[str]:
    """The lines of one stage."""
    written = ", ".join(name_text(target.name) + index_text(stage.where) for target in stage.targets)
    lets, values = values_text(stage.values, [stage.accumulate or target.dtype for target in stage.targets])
    scans = [axis for axis in stage.axes if axis.kind == "scan"]
    sign = "="
    if stage.reducer is not None:
        name = name_text(stage.reducer.name)
        over = ", ".join(map(_range, stage.reduction_axes))
        if scans:
            word = "running" if not stage.exclusive else "running, exclusive,"
            values = f"{word} {name} along {', '.join(name_text(a.name) for a in scans)} of {values}"
        elif stage.init is None:
            sign, values = f"{name}=", f"{values}  over {over}" if over else values
        else:
            values = f"{name} over {over} of {values}" if over else f"{name} of {values}"
    text = f"{written} {sign} {values}"
    if stage.init is not None:
        text += "  from " + ", ".join(_literal(value) for value in stage.init)
    if stage.guards:
        text += "  where " + " and ".join(f"{dim_text(g)} >= 0" for g in stage.guards)
    free = [axis for axis in stage.axes if axis.kind != "reduction"]
    if free:
        text += "  for " + ", ".join(map(_range, free))
    if stage.accumulate is not None:
        text += f"  in {stage.accumulate}"
    return [*lets, text]


def _literal(value: Constant) -> str:
    return expression_text(value, value.dtype)


def _range(axis: Axis) -> str:
    return f"{name_text(axis.name)} < {dim_text(axis.extent)}"


def _declared(buffer: Buffer) -> str:
    return f"{name_text(buffer.name)}: {buffer.dtype}{index_text(buffer.shape)}"
