"""`compile_kept`: a model that was compiled before, as it is kept on disk, or `compile_model`.

What is kept is the compilation for all sizes. What is compiled for the sizes of a call is kept where it is small, since
every one keeps the weights again; of a model that is compiled at each call, that it is one is kept too. Models with
black boxes are compiled anew, from kept objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from tilework.cache.hashing import checksum
from tilework.cache.keys import Key, key_of
from tilework.cache.store import Store
from tilework.compiler.model_key import parts_beside_the_model
from tilework.compiler.options import CompileOptions
from tilework.compiler.own_sources import are_as_loaded
from tilework.errors import FrontendError
from tilework.frontends.onnx.installed import onnx_version
from tilework.frontends.onnx.model_files import ModelContent, SeenFile, content_of, locations_of
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine as machine_named
from tilework.runtime.context import Context, default_context
from tilework.runtime.executable import Executable
from tilework.runtime.kept_models import KIND, keep_model, keep_small_model, kept_model
from tilework.runtime.kept_reasons import PER_CALL, Inputs, keep_per_call, kept_per_call
from tilework.runtime.variants import Array, ShapeVariants

if TYPE_CHECKING:
    from onnx import ModelProto

    from tilework.frontends.onnx.source import Source
    from tilework.runtime.per_shape import PerShape

Shapes: TypeAlias = "Mapping[str, Sequence[int]]"

_FILES = "model files"
_LOCATIONS = "locations"


def compile_kept(
    source: Source, shapes: Shapes, options: CompileOptions, context: Context | None
) -> Executable | PerShape:
    """As `compile_model`, from disk where that is there. Arguments and errors are the same."""
    owner = context if context is not None else default_context()
    kept = _looked_up(source, shapes, options, owner)
    if kept is None:
        return _compile(source, shapes, options, context, None)

    def compile_for(exact: Shapes, values: Mapping[str, Array]) -> Executable:
        def make() -> Executable:
            from tilework.frontends.onnx.compiled import compile_exactly

            return compile_exactly(source, shapes, options, context, exact, values)

        return kept.for_call(exact, values, make)

    found = kept.find()
    if found is None:
        per_call = kept.found_per_call()
        if per_call is not None:
            from tilework.runtime.per_shape import PerShape

            return PerShape(*per_call, compile_for, context)
        with kept.alone():
            found = kept.find(again=True)  # another process may have made it meanwhile
            if found is None:
                return _compile(source, shapes, options, context, kept)

    def compile_with(overridden: tuple[str, ...]) -> Executable | PerShape:
        from tilework.frontends.onnx.compiled import compile_overridden

        return compile_overridden(source, shapes, options, context, overridden)

    executable, leaves_free = found
    if leaves_free:
        executable.variants = ShapeVariants(compile_for)
    if executable.overriding is not None:
        executable.overriding.compile_with = compile_with
    return executable


def _compile(
    source: Source, shapes: Shapes, options: CompileOptions, context: Context | None, kept: KeptModel | None
) -> Executable | PerShape:
    from tilework.frontends.onnx.compiled import compile_model

    return compile_model(source, shapes, options, context, kept=kept)


def _looked_up(source: Source, shapes: Shapes, options: CompileOptions, owner: Context) -> KeptModel | None:
    """What to look for; None where nothing is kept, or the model cannot be read."""
    if owner.objects is None or not owner.objects.store.access.reads:
        return None
    content = content_of(source)
    if content is None:
        return None
    target = machine_named(options.machine)
    try:
        parts = parts_beside_the_model(shapes, options, target, {"onnx": onnx_version()})
    except (OSError, ImportError):
        return None
    return KeptModel(owner.objects.store, content, parts, owner, target)


class KeptModel:
    """The place of one model in the store."""

    def __init__(
        self, store: Store, content: ModelContent, parts: Mapping[str, str], owner: Context, target: CpuMachine
    ) -> None:
        """`parts`: of the key, beside the model's own."""
        self._store = store
        self._content = content
        self._parts = {**parts, "model": content.digest}
        self._owner = owner
        self._target = target
        self._names = key_of(_FILES, {"model": content.digest})
        self._data: dict[str, SeenFile] | None = None if content.file is not None else {}

    def find(self, *, again: bool = False) -> tuple[Executable, bool] | None:
        """The executable, and whether it leaves extents free. Raises `CodegenError` 1764 as compiling does."""
        key = self._key()
        return None if key is None else kept_model(self._store, key, self._owner, self._target, counted=not again)

    def alone(self) -> AbstractContextManager[None]:
        """Be the only one that compiles this model. (Its data files may not be known yet.)"""
        return self._store.alone(key_of(KIND, self._parts))

    def learn(self, model: ModelProto) -> None:
        """Now that it is parsed: which files are part of it."""
        if self._data is None:
            locations = locations_of(model)
            self._data = self._content.data_files(locations)
            if self._data is not None:
                self._store.put(self._names, {_LOCATIONS: json.dumps(locations).encode()})

    def keep(self, executable: Executable, leaves_free: bool) -> None:
        """Keep what was compiled, unless a file of the model, or of this package, changed while it was."""
        key = self._key()
        if key is not None and self._may_keep():
            keep_model(self._store, key, executable, leaves_free)

    def for_call(self, exact: Shapes, values: Mapping[str, Array], make: Callable[[], Executable]) -> Executable:
        """What serves these shapes, and these values of some inputs: found, or made and, unless it is large, kept.

        Raises what `make` does, and `CodegenError` 1764 as compiling does.
        """
        own = KeptModel(
            self._store, self._content, {**self._parts, **_call_parts(exact, values)}, self._owner, self._target
        )
        own._data = self._data
        found = own.find()
        if found is None:
            with own.alone():
                found = own.find(again=True)
                if found is None:
                    made = make()
                    key = own._key()
                    if key is not None and own._may_keep():
                        keep_small_model(self._store, key, made)
                    return made
        return found[0]

    def found_per_call(self) -> tuple[Inputs, FrontendError] | None:
        """Of a model that is compiled at each call its inputs, and why it is; None where that is not known."""
        key = self._key(PER_CALL)
        return None if key is None else kept_per_call(self._store, key, self._called)

    def keep_per_call(self, inputs: Inputs, reason: FrontendError) -> None:
        """Keep that the model is compiled at each call, on the same conditions."""
        key = self._key(PER_CALL)
        if key is not None and self._may_keep():
            keep_per_call(self._store, key, self._called, inputs, reason)

    @property
    def _called(self) -> str:
        """What errors call the model."""
        return str(self._content.file.path) if self._content.file is not None else ""

    def _may_keep(self) -> bool:
        files = [*(self._data or {}).values(), *([self._content.file] if self._content.file is not None else [])]
        return self._store.access.writes and all(f.unchanged() for f in files) and are_as_loaded()

    def _key(self, kind: str = KIND) -> Key | None:
        """The key; None where nobody knows yet which files are part of the model, or one of them cannot be had."""
        if self._data is None:
            names = self._store.get(self._names)
            if names is not None:
                self._data = self._content.data_files(tuple(json.loads(names[_LOCATIONS])))
        if self._data is None:
            return None
        data = json.dumps([[location, file.digest] for location, file in sorted(self._data.items())])
        return key_of(kind, {**self._parts, "data": data})


def _call_parts(exact: Shapes, values: Mapping[str, Array]) -> dict[str, str]:
    """What the sizes and values of a call add to a key."""
    held = [
        [name, array.dtype.name, list(array.shape), checksum(array.tobytes()).hex()]
        for name, array in sorted(values.items())
    ]
    return {
        "sizes of the call": json.dumps(sorted((name, list(shape)) for name, shape in exact.items())),
        "values of the call": json.dumps(held),
    }
