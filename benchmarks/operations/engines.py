"""Engines that run one operation: Tilework, and beside it numpy, ONNX Runtime and torch.

Every engine's result is compared with float64 when it is built, so that nothing wrong is ever timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.engine import Engine, Prepared
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, session
from benchmarks.operations.convolution import Convolution
from benchmarks.operations.matrix_product import Bfloat16Product, IntegerProduct, MatrixProduct
from benchmarks.operations.memory import Gelu, LayerNorm, Softmax, SumColumns, SumRows, Transposed
from benchmarks.operations.operation import Array, Operation

HERE = "benchmarks.operations.engines"
NUMPY, TORCH, CONSTANT = "numpy", "torch", "constant"
KINDS: dict[str, type[Operation]] = {
    kind.kind: kind
    for kind in (
        MatrixProduct, Bfloat16Product, IntegerProduct, Convolution, Softmax, LayerNorm, SumRows, SumColumns, Gelu,
        Transposed,
    )
}  # fmt: skip


class WrongValuesError(Exception):
    """An engine computes something else than float64 does, beyond the bound."""


def operation(described: Mapping[str, Any]) -> Operation:
    """Read what `Operation.described` wrote."""
    fields = dict(described)
    return KINDS[fields.pop("kind")](**fields)


# -- making engines ----------------------------------------------------------------------------------------------------
def tilework(chosen: Operation, threads: int, seed: int, machine: str = "host") -> Engine:
    """Tilework, with the shape known when it compiles."""
    return _engine(TILEWORK, "tilework_engine", chosen, threads, seed, machine=machine)


def peers(chosen: Operation, threads: int, seed: int, kinds: Sequence[str] = (NUMPY, ONNX_RUNTIME)) -> list[Engine]:
    """The peers to compare with; torch beside them where it is installed."""
    from importlib.util import find_spec

    names = [*kinds, TORCH] if find_spec("torch") is not None else list(kinds)
    return [_engine(name, f"{name}_engine", chosen, threads, seed) for name in names]


def at_many_rows(chosen: Operation, rows: Sequence[int], threads: int, seed: int, symbolic: bool) -> Engine:
    """Tilework at several numbers of rows: one object for all of them, or one for each. `select` takes the number."""
    return _engine(
        TILEWORK if symbolic else CONSTANT,
        "many_rows_engine",
        chosen,
        threads,
        seed,
        rows=list(rows),
        symbolic=symbolic,
    )


def _engine(name: str, factory: str, chosen: Operation, threads: int, seed: int, **more: Any) -> Engine:
    # whoever measures may have pinned OpenBLAS to other kernels than it chooses by itself
    variables = {"OPENBLAS_CORETYPE": None, "OPENBLAS_L2_SIZE": None, "OPENBLAS_NUM_THREADS": str(threads)}
    arguments = {"described": chosen.described(), "threads": threads, "seed": seed, **more}
    return Engine(name, f"{HERE}:{factory}", arguments, variables)


# -- what runs in their processes --------------------------------------------------------------------------------------
def drawn(chosen: Operation, seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and constants of an operation."""
    return chosen.inputs(np.random.default_rng(seed)), chosen.constants(np.random.default_rng(seed + 1))


def checked(chosen: Operation, given: Mapping[str, Array], result: Array) -> float:
    """The difference from float64 as a share of the bound; raises `WrongValuesError` beyond it."""
    share = chosen.excess(given, result)
    if not share <= 1:
        raise WrongValuesError(f"{chosen.label} is off by {share:.3g} times what it may be")
    return share


def compiled(chosen: Operation, constants: Mapping[str, Array], threads: int, machine: str, symbolic: bool) -> Any:
    """The executable of an operation; code for another machine than this one has to run here all the same."""
    import tilework
    from tilework.compiler.compile import compile_graph
    from tilework.compiler.options import CompileOptions
    from tilework.machine.finder import machine as machine_named
    from tilework.runtime.context import ContextOptions

    graph = chosen.graph(constants, symbolic)
    context = tilework.Context(ContextOptions(threads=threads))
    if machine == "host":
        return tilework.compile(graph, context=context)
    context.jit.target = machine_named(machine)
    return compile_graph(graph, CompileOptions(machine=machine), context)


def tilework_engine(described: dict[str, Any], threads: int, seed: int, machine: str) -> Prepared:
    """Tilework through its public door; large results are in memory that is used again."""
    chosen = operation(described)
    inputs, constants = drawn(chosen, seed)
    executable = compiled(chosen, constants, threads, machine, symbolic=False)
    given = tuple(inputs.values())
    share = checked(chosen, {**inputs, **constants}, executable(*given)[0])
    explanation = executable.explain()
    facts = {
        "threads": threads,
        "of bound": share,
        "compile ms": round(explanation.total_milliseconds, 1),
        "code bytes": explanation.code_bytes,
        "regions": [f"{region.algorithm}: {region.trace}" for region in explanation.regions],
    }
    return Prepared(lambda: executable(*given), facts)


def many_rows_engine(described: dict[str, Any], threads: int, seed: int, rows: list[int], symbolic: bool) -> Prepared:
    """Tilework at several numbers of rows; the first is selected."""
    base = operation(described)
    calls: dict[str, Callable[[], object]] = {}
    shares: dict[str, float] = {}
    general: Any = None
    objects = 0
    for count in rows:
        chosen = base.with_rows(count)
        inputs, constants = drawn(chosen, seed)
        _, fixed = drawn(base, seed)  # what is known when it compiles is the same for all
        if general is None or not symbolic:
            general = compiled(
                chosen, fixed if symbolic else constants_for(chosen, constants, fixed), threads, "host", symbolic
            )
            objects += 1
        held = fixed if symbolic else constants_for(chosen, constants, fixed)
        given = tuple(inputs.values())
        shares[str(count)] = checked(chosen, {**inputs, **held}, general(*given)[0])
        calls[str(count)] = lambda executable=general, given=given: executable(*given)
    chosen_case = [str(rows[0])]

    def select(case: str) -> None:
        chosen_case[0] = case

    facts = {"threads": threads, "of bound": shares, "objects": objects}

    def call() -> object:
        return calls[chosen_case[0]]()

    return Prepared(call, facts, select=select)


def constants_for(chosen: Operation, own: Mapping[str, Array], fixed: Mapping[str, Array]) -> Mapping[str, Array]:
    """The constants that all numbers of rows share, which must fit this one."""
    if {n: a.shape for n, a in own.items()} != {n: a.shape for n, a in fixed.items()}:
        raise ValueError(f"{chosen.label}: constants depend on the number of rows")
    return fixed


def numpy_engine(described: dict[str, Any], threads: int, seed: int) -> Prepared:
    """numpy, with OpenBLAS's own choice of kernels, into a result it may use again."""
    chosen = operation(described)
    inputs, constants = drawn(chosen, seed)
    given = {**inputs, **constants}
    made = chosen.numpy(given)
    if made is None:
        raise ValueError(f"numpy has no {chosen.label}")
    call, result = made
    call()
    return Prepared(call, {"threads": threads, "version": np.__version__, "of bound": checked(chosen, given, result)})


def onnxruntime_engine(described: dict[str, Any], threads: int, seed: int) -> Prepared:
    """ONNX Runtime, constants as initializers (which it packs), into a result it may use again."""
    chosen = operation(described)
    inputs, constants = drawn(chosen, seed)
    model = chosen.model({name: chosen.to_peer(name, array) for name, array in constants.items()})
    running = session(model.SerializeToString(), threads)
    binding = running.io_binding()
    held = {name: chosen.to_peer(name, array) for name, array in inputs.items()}
    y = np.zeros(chosen.peer_result(), np.float32)
    for name, array in held.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    running.run_with_iobinding(binding)
    share = checked(chosen, {**inputs, **constants}, chosen.from_peer(y))
    import onnxruntime

    facts = {"threads": threads, "version": onnxruntime.__version__, "of bound": share}
    # results are bound by their address alone: what keeps the array has to live as long as the engine
    return Prepared(lambda: running.run_with_iobinding(binding), facts, lambda: {"y": chosen.from_peer(y), **held})


def torch_engine(described: dict[str, Any], threads: int, seed: int) -> Prepared:
    """Torch, eager, without gradients."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    chosen = operation(described)
    inputs, constants = drawn(chosen, seed)
    given = {**inputs, **constants}
    call = chosen.torch(torch, {name: torch.from_numpy(chosen.to_peer(name, a)) for name, a in given.items()})
    if call is None:
        raise ValueError(f"torch is not compared on {chosen.label}")
    share = checked(chosen, given, chosen.from_peer(call().numpy()))
    return Prepared(call, {"threads": threads, "version": torch.__version__, "of bound": share})
