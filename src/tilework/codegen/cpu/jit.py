"""The JIT container: LLVM text to object bytes, and object bytes to addresses.

Objects are the artefact: what is compiled is kept as bytes, stored in the cache, and loaded again in a fraction of a
millisecond without reading any text. One `Jit` belongs to one `Context`.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from tilework.codegen.cpu.llvm import (
    LLVM_LOCK,
    Generators,
    binding,
    compile_object,
    emit_assembly,
    host_target,
    target_machine,
)
from tilework.codegen.cpu.objects import CompileTarget, symbol_table
from tilework.errors import CodegenError

HOST_FUNCTIONS: tuple[str, ...] = (
    # what LLVM itself calls for copies, remainders and roundings
    "memcpy", "memmove", "memset", "fmod", "fmodf", "fma", "fmaf", "floor", "floorf", "ceil", "ceilf", "trunc",
    "truncf", "rint", "rintf", "nearbyint", "nearbyintf", "round", "roundf", "roundeven", "roundevenf",
    "__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "__truncsfbf2", "__truncdfbf2",
    # the thread pool and the clock
    "syscall", "pthread_create", "pthread_join", "pthread_self", "sched_yield", "sched_getcpu",
    "clock_gettime",
    # the interpreter: signals and the call gate
    "PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_Restore",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsVoidPtr", "PyLong_FromLong", "PyErr_Occurred",
    "PyErr_BadInternalCall",
)  # fmt: skip
"""Every function outside generated code that generated code may call. Anything else is refused before linking."""


class LoadedCode:
    """Addresses of loaded code, which stays loaded while this object lives and is not closed.

    It keeps everything it was linked against alive too. `close()` frees the code: nobody may be running it, and no
    address taken from it may be used again.
    """

    def __init__(
        self, addresses: Mapping[str, int], release: Callable[[], None], uses: tuple[LoadedCode, ...], size: int
    ) -> None:
        self.addresses: Mapping[str, int] = dict(addresses)
        self.size = size
        """Bytes of object code that were loaded."""
        self._uses = uses
        # A finalizer, not __del__: it holds what must die later, so that no garbage cycle can free the JIT first.
        self._finalizer = weakref.finalize(self, release)
        self._finalizer.atexit = False

    def __getitem__(self, name: str) -> int:
        return self.addresses[name]

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def close(self) -> None:
        """Free the code. Closing twice is allowed."""
        self._finalizer()
        self._uses = ()


class ObjectStore(Protocol):
    """Where objects are kept from one process to the next."""

    def object_of(self, text: str, target: CompileTarget, make: Callable[[], bytes]) -> bytes:
        """The object of LLVM text for a target: one that was kept, or what `make` gives, which is kept."""
        ...


class Jit:
    """One LLVM just-in-time linker and everything that was loaded through it.

    Threads: any thread may call any method; compiling and linking are serial in a process. Fork: forking waits while a
    thread compiles or links; a child can compile and load, and addresses stay valid in it.
    """

    def __init__(self, target: CompileTarget | None = None, store: ObjectStore | None = None) -> None:
        self._store = store
        self.target: CompileTarget = target if target is not None else host_target()
        self._linker: list[Any] = []  # one, once something was loaded
        self._generators = Generators()
        self._names = itertools.count()
        self._host_addresses: dict[str, int] = {}
        self._closed = False
        weakref.finalize(self, _let_go, self._linker, self._generators).atexit = False

    def compile_object(self, text: str, target: CompileTarget | None = None) -> bytes:
        """Object code of `text` for `target` (by default this process's machine); raises as `compile_object`."""
        chosen = target if target is not None else self.target

        def make() -> bytes:
            return compile_object(text, chosen, self._generators)

        return make() if self._store is None else self._store.object_of(text, chosen, make)

    def emit_assembly(self, text: str, target: CompileTarget | None = None) -> str:
        """Assembly of `text` for `target` (by default this process's machine)."""
        return emit_assembly(text, target if target is not None else self.target)

    def load(
        self,
        objects: Sequence[bytes] | bytes,
        exports: Iterable[str],
        *,
        uses: Sequence[LoadedCode] = (),
        imports: Mapping[str, int] | None = None,
    ) -> LoadedCode:
        """Link objects into this process and find the addresses of `exports`.

        A symbol that the objects do not define is taken from `imports` (name to address), then from the exports of
        `uses`, then from `HOST_FUNCTIONS`. Every object needs a name of its own for each exported function only within
        this call: what different calls load never meets.

        Raises:
            CodegenError: 1682 a symbol that nothing defines, 1683 unreadable object, 1685 after `close`.
        """
        images = [objects] if isinstance(objects, bytes) else list(objects)
        with LLVM_LOCK:
            if self._closed:
                raise CodegenError(1685, "code cannot be loaded: the JIT is closed")
            if any(used.closed for used in uses):
                raise CodegenError(1685, "code cannot be linked with code that was freed")
            linked = self._addresses_for(images, uses, imports or {})
            return self._link(images, list(dict.fromkeys(exports)), linked, tuple(uses))

    def _link(
        self, images: list[bytes], exports: list[str], linked: Mapping[str, int], uses: tuple[LoadedCode, ...]
    ) -> LoadedCode:
        if not self._linker:
            with contextlib.closing(target_machine(host_target())) as machine:
                self._linker.append(binding().create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True))
        builder = binding().JITLibraryBuilder()
        for image in images:
            builder.add_object_img(image)
        for name, address in linked.items():
            builder.import_symbol(name, address)
        for name in exports:
            builder.export_symbol(name)
        try:
            tracker = builder.link(self._linker[0], f"library{next(self._names)}")
        except RuntimeError as problem:
            code = 1682 if "ymbols not found" in str(problem) else 1683
            raise CodegenError(code, f"linking failed: {problem}", where=", ".join(exports)) from problem
        addresses = {name: int(tracker[name]) for name in exports}
        return LoadedCode(addresses, _Release(tracker, self._linker[0]), uses, sum(map(len, images)))

    def close(self) -> None:
        """Refuse further loading. Code stays loaded while its `LoadedCode` lives; the linker goes with the last one."""
        self._closed = True
        _let_go(self._linker, self._generators)

    def _addresses_for(
        self, images: Sequence[bytes], uses: Sequence[LoadedCode], imports: Mapping[str, int]
    ) -> dict[str, int]:
        """Addresses of everything the objects need from outside; each object may also use another one's symbols."""
        needed: dict[str, int] = dict(imports)
        missing: list[str] = []
        tables = [symbol_table(image) for image in images]
        defined = {name for table in tables if table for name in table.defined}
        for table in tables:
            if table is None:  # not ELF: the linker itself finds out what is missing
                for used in uses:
                    needed |= used.addresses
                for name in HOST_FUNCTIONS:
                    with contextlib.suppress(AttributeError):
                        needed.setdefault(name, self._host_address(name))
                continue
            for name in table.undefined:
                if name in needed or name in defined or name == "_GLOBAL_OFFSET_TABLE_":
                    continue
                owner = next((used for used in uses if name in used.addresses), None)
                if owner is not None:
                    needed[name] = owner.addresses[name]
                elif name in HOST_FUNCTIONS:
                    try:
                        needed[name] = self._host_address(name)
                    except AttributeError:
                        missing.append(f"{name} (not in this process's C library)")
                else:
                    missing.append(name)
        if missing:
            raise CodegenError(1682, f"nothing defines {', '.join(sorted(missing))}", where=", ".join(sorted(missing)))
        return needed

    def _host_address(self, name: str) -> int:
        found = self._host_addresses.get(name)
        if found is None:
            library = ctypes.pythonapi if name.startswith("Py") else ctypes.CDLL(None)
            found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
            self._host_addresses[name] = found
        return found


class _Release:
    """Frees one library. Holds the linker, which must outlive every library in it."""

    def __init__(self, tracker: Any, linker: Any) -> None:
        self._held: list[Any] = [tracker, linker]

    def __call__(self) -> None:
        with LLVM_LOCK:
            self._held[0].close()
            self._held.clear()


def _let_go(linker: list[Any], generators: Generators) -> None:
    with LLVM_LOCK:
        linker.clear()
        generators.clear()
