"""PyTorch: a program that `torch.export.save` wrote, compiled by `torch.compile`, or operator by operator without a C++
compiler. It reads no ONNX.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from tilework.dtypes import dtype_named, dtype_of
from tilework.peers.engine import Engine, Opened, Task

BFLOAT16 = "bfloat16"
"""NumPy has no such type of its own, so the bits go from one library to the other."""


def _load(task: Task) -> str:  # noqa: ARG001
    import torch._inductor.compile_fx  # pyright: ignore[reportMissingImports, reportUnusedImport]  # what compiling would import

    module: Any = torch
    return str(module.__version__)


def _open(task: Task) -> Opened:
    import torch.utils._pytree  # pyright: ignore[reportMissingImports, reportUnusedImport]

    module: Any = torch
    trees: Any = module.utils._pytree  # noqa: SLF001 - what an exported program describes its arguments by
    module.set_num_threads(task.threads)
    program = module.export.load(task.model)
    flat = [_tensor(module, one) if isinstance(one, np.ndarray) else one for one in _arguments(module, program, task)]
    positional, named = trees.tree_unflatten(flat, program.call_spec.in_spec)
    eager = program.module()
    function, reason = _compiled(module, eager, positional, named), ""
    if isinstance(function, Exception):
        function, reason = eager, " ".join(str(function).split())[:200]

    count = 0

    def call() -> Sequence[Any]:
        nonlocal count
        with module.inference_mode():
            found = [_array(one) for one in _flat(module, function(*positional, **named))]
        count = len(found)
        return found

    def facts() -> Mapping[str, Any]:
        return {"mode": "eager", "why_eager": reason} if reason else {"mode": "compiled"}

    return Opened(call, lambda: [f"output{number}" for number in range(count)], facts)


def _arguments(module: Any, program: Any, task: Task) -> list[Any]:
    """The flat arguments of the program: inputs by name where names agree, else by place; raises `ValueError`."""
    signature = module.export.graph_signature
    specs = [one for one in program.graph_signature.input_specs if one.kind == signature.InputKind.USER_INPUT]
    takes = [one.arg.name for one in specs if isinstance(one.arg, signature.TensorArgument)]
    if len(takes) != len(task.inputs):
        text = f"the program takes {len(takes)} tensors ({', '.join(takes)}), the model {len(task.inputs)}"
        raise ValueError(f"{text} ({', '.join(task.inputs)})")
    by_name = set(takes) == set(task.inputs)
    arrays = iter([task.inputs[name] for name in takes] if by_name else list(task.inputs.values()))
    return [next(arrays) if isinstance(one.arg, signature.TensorArgument) else one.arg.value for one in specs]


def _compiled(module: Any, eager: Any, positional: Any, named: Any) -> Any:
    """The program compiled for the sizes of these arguments, or the exception for which it cannot be."""
    function = module.compile(eager)
    try:
        with module.inference_mode():
            function(*positional, **named)
    except Exception as error:  # noqa: BLE001 - no C++ compiler, an operator that Inductor lacks
        return error
    return function


def _tensor(module: Any, array: Any) -> Any:
    if array.dtype.kind == "V" and dtype_of(array).name == BFLOAT16:
        return module.from_numpy(array.view(np.int16)).view(module.bfloat16)
    return module.from_numpy(array)


def _array(tensor: Any) -> Any:
    if str(tensor.dtype) == f"torch.{BFLOAT16}":
        import torch  # pyright: ignore[reportMissingImports]

        kind: Any = torch
        return tensor.view(kind.int16).numpy().view(dtype_named(BFLOAT16).numpy)
    return tensor.numpy()


def _flat(module: Any, value: object) -> Iterator[Any]:
    """Tensors in the order of the results; those of mappings, such as a transformer's outputs, in theirs."""
    if isinstance(value, module.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in cast("Mapping[Any, object]", value).values():
            yield from _flat(module, one)
    elif isinstance(value, (list, tuple)):
        for one in cast("Sequence[object]", value):
            yield from _flat(module, one)


ENGINE = Engine("torch", _load, _open, suffix=".pt2")
