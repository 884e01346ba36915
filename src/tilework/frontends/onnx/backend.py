"""ONNX's backend protocol, so that ONNX's own test suite (and anyone who speaks it) can run models on Tilework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilework.compiler.options import CompileOptions
from tilework.errors import UsageError
from tilework.frontends.onnx.boundary import PerStructure, takes_parts
from tilework.frontends.onnx.compiled import compile_model
from tilework.runtime.context import Context
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape

if TYPE_CHECKING:
    from onnx import ModelProto


class Prepared:
    """A compiled model; `run` takes the inputs in the model's order, or by name, and returns the outputs.

    Sequences are lists of arrays, an empty optional is None.
    """

    def __init__(self, executable: Executable | PerShape | PerStructure) -> None:
        self.executable = executable

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **options: Any) -> tuple[Any, ...]:
        """The outputs for some inputs. Options of the protocol mean nothing here."""
        del options
        return tuple(self.executable(**inputs) if isinstance(inputs, Mapping) else self.executable(*inputs))


def supports_device(device: str) -> bool:
    """Whether models can be prepared for a device, "CPU" alone for now."""
    return device == "CPU"


def prepare(model: ModelProto, device: str = "CPU", context: Context | None = None, **options: Any) -> Prepared:
    """Compile a model.

    Raises:
        UsageError: 1002 for a device other than "CPU".
        FrontendError, CodegenError: as `tilework.compile`.
    """
    del options
    if not supports_device(device):
        raise UsageError(1002, f"device is {device!r}", hint="use 'CPU'")
    if takes_parts(model):
        return Prepared(PerStructure(model, CompileOptions(), context))
    return Prepared(compile_model(model, None, CompileOptions(), context))


def run_model(
    model: ModelProto, inputs: Sequence[Any] | Mapping[str, Any], device: str = "CPU", **options: Any
) -> tuple[Any, ...]:
    """Compile a model and run it once."""
    return prepare(model, device, **options).run(inputs)
