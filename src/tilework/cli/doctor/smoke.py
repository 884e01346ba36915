"""The smoke test: y = x + 1 compiled, run on several threads and compared, in a process that may crash."""

from __future__ import annotations

from time import perf_counter
from typing import Any, cast

from tilework.cli.doctor.section import Advice, Section
from tilework.errors import RunError, TileworkError
from tilework.tuning.measure.process import WorkerProcess
from tilework.tuning.measure.serving import Say, serve

MODULE = "tilework.cli.doctor.smoke"
LIMIT_SECONDS = 120.0
BAD_SETTING = 1002
SIZES = (0, 1, 7, 300_001)
"""Extents it is tried with: none, one, an odd few, and enough for every thread."""
GRAPH = """
graph smoke {
  symbol N in 0..
  input x: float32[N]
  constant one: float32[1] = [1]
  y: float32[N] = add(x, one) named y
  output y
}
"""


def smoke_test(module: str = MODULE) -> Section:
    """Compile and run it in a process of its own."""
    try:
        process = WorkerProcess(module)
        try:
            found = process.ask({}, LIMIT_SECONDS)
        finally:
            process.close()
    except RunError as error:
        found: dict[str, Any] = {"outcome": "failed", "reason": error.message, "code": error.code}
    if found["outcome"] == "done":
        facts = {"passed": True, "compile_ms": found["compile_ms"], "llvm": found["llvm"], "kept": found["kept"]}
        kept = found["kept"]
        advice = ()
        if kept is not None and kept["not_written"]:
            do = "Make room on its disk, or see `tilework cache stats`."
            advice = (Advice("what was compiled could not be written to the cache", do),)
        text = f"y = x + 1 is right, compiled in {found['compile_ms']:.0f} ms by LLVM {found['llvm']}"
        return Section("smoke_test", facts, (("smoke test", text),), advice)
    reason = " ".join(str(found["reason"]).split())[:400]
    if found.get("code") == BAD_SETTING:  # told among the variables
        return Section("smoke_test", {"passed": None, "reason": reason}, (("smoke test", f"not tried: {reason}"),))
    facts = {"passed": False, "outcome": found["outcome"], "reason": reason}
    do = "Report it with the output of `tilework doctor --json`."
    advice = (Advice(f"y = x + 1 could not be compiled and run: {reason}", do, True, found.get("code")),)
    return Section("smoke_test", facts, (("smoke test", f"FAILED: {reason}"),), advice)


def tried() -> dict[str, Any]:
    """Compile and run here. Raises what that raises, `RunError` 1802 for a wrong result."""
    import numpy as np
    from llvmlite import binding

    from tilework.compiler.compile import compile_graph
    from tilework.graph.parse import parse
    from tilework.runtime.context import Context

    with Context() as context:
        start = perf_counter()
        executable = compile_graph(parse(GRAPH), context=context)
        spent = perf_counter() - start
        for size in SIZES:
            x = np.arange(size, dtype=np.float32)
            (y,) = executable(x)
            if not np.array_equal(y, x + 1):
                raise RunError(1802, f"y = x + 1 is wrong for {size} elements")
        kept = None
        if context.objects is not None:
            kept = {what: context.objects.store.counts[what] for what in ("hits", "misses", "written", "not_written")}
    info = cast("tuple[int, ...]", binding.llvm_version_info)  # pyright: ignore[reportUnknownMemberType]
    llvm = ".".join(map(str, info))
    return {"compile_ms": spent * 1e3, "llvm": llvm, "kept": kept}


def answer(message: dict[str, Any], say: Say) -> dict[str, Any]:  # noqa: ARG001
    """Whatever goes wrong is an answer too."""
    try:
        return {"outcome": "done", **tried()}
    except TileworkError as error:
        return {"outcome": "refused", "reason": error.message, "code": error.code}
    except Exception as error:  # noqa: BLE001 - the parent is told, whatever it is
        return {"outcome": "failed", "reason": f"{type(error).__name__}: {error}", "code": None}


def main() -> None:
    """Answer until the parent closes the pipe."""
    serve(answer)
