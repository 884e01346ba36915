"""The JIT container: LLVM text to object bytes, and object bytes to addresses.

Objects are the artefact: what is compiled is kept as bytes, stored in the cache, and loaded again in a fraction of a
millisecond without reading any text. One `Jit` belongs to one `Context`.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tilework.codegen.cpu.objects import CompileTarget, architecture, check_text, symbol_table
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine

HOST_FUNCTIONS: tuple[str, ...] = (
    # what LLVM itself calls for copies, remainders and roundings
    "memcpy", "memmove", "memset", "fmod", "fmodf", "fma", "fmaf", "floor", "floorf", "ceil", "ceilf", "trunc",
    "truncf", "rint", "rintf", "nearbyint", "nearbyintf", "round", "roundf", "roundeven", "roundevenf",
    "__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "__truncsfbf2", "__truncdfbf2",
    # the thread pool and the clock
    "syscall", "pthread_create", "pthread_join", "pthread_self", "sched_yield",
    "clock_gettime",
    # the interpreter: signals and the call gate
    "PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_Restore",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsVoidPtr", "PyLong_FromLong", "PyErr_Occurred",
    "PyErr_BadInternalCall",
)  # fmt: skip
"""Every function outside generated code that generated code may call. Anything else is refused before linking."""

# LLVM's binding has one lock for the whole process, so this one is too: it is held while LLVM is at work, and across
# forks, so that a child never finds LLVM locked by a thread that it does not have.
_LLVM = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LLVM.acquire, after_in_parent=_LLVM.release, after_in_child=_LLVM.release)


@dataclass(frozen=True)
class HostTarget:
    """The machine this process runs on, as LLVM describes it (features listed in full)."""

    triple: str
    cpu: str
    features: str


def host_target() -> HostTarget:
    """The host's triple, processor and features, read from LLVM."""
    with _LLVM:
        binding = _binding()
        features = binding.get_host_cpu_features().flatten()
        return HostTarget(binding.get_process_triple(), binding.get_host_cpu_name(), features)


def compile_object(text: str, target: CompileTarget) -> bytes:
    """Relocatable object code for LLVM text, at code generation level 3 and without optimisation passes.

    Position independent, small code model: constants are read relative to the instruction. Nothing is run or loaded, so
    any x86-64 or AArch64 target will do.

    Raises:
        CodegenError: 1680 text refused, 1681 instruction not on the target, 1684 unknown target.
    """
    return _emit(text, target, _object_bytes)


def emit_assembly(text: str, target: CompileTarget) -> str:
    """The same code as `compile_object`, as assembly text for a reader. Raises the same errors."""
    return _emit(text, target, lambda machine, module: str(machine.emit_assembly(module)))


def verify_text(text: str, target: CompileTarget) -> None:
    """Read and verify LLVM text without generating code. Raises as `compile_object`."""
    _emit(text, target, lambda machine, module: None)  # noqa: ARG005


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
        self._generators: dict[tuple[str, str, str], TargetMachine] = {}
        self._names = itertools.count()
        self._host_addresses: dict[str, int] = {}
        self._closed = False
        weakref.finalize(self, _let_go, self._linker, self._generators).atexit = False

    def compile_object(self, text: str, target: CompileTarget | None = None) -> bytes:
        """Object code of `text` for `target` (by default this process's machine); raises as `compile_object`."""
        chosen = target if target is not None else self.target

        def make() -> bytes:
            return _emit(text, chosen, _object_bytes, self._generators)

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
        with _LLVM:
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
            binding = _binding()
            with contextlib.closing(_target_machine(host_target())) as machine:
                self._linker.append(binding.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True))
        builder = _llvm().JITLibraryBuilder()
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
        with _LLVM:
            self._held[0].close()
            self._held.clear()


def _let_go(linker: list[Any], generators: dict[tuple[str, str, str], TargetMachine]) -> None:
    with _LLVM:
        linker.clear()
        generators.clear()


def _binding() -> Any:
    """llvmlite's binding with this machine's targets ready (asking again is cheap). Only with the lock held."""
    binding = _llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    return binding


def _llvm() -> Any:
    from llvmlite import binding

    return binding


def _target_machine(target: CompileTarget) -> TargetMachine:
    binding = _binding()
    if architecture(target.triple) != architecture(binding.get_process_triple()):
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
    try:
        kind = binding.Target.from_triple(target.triple)
    except RuntimeError as problem:
        raise CodegenError(1684, f"no code generator for {target.triple}: {problem}", where=target.triple) from problem
    return kind.create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small", jit=False
    )


def _object_bytes(machine: Any, module: Any) -> bytes:
    return bytes(machine.emit_object(module))


def _emit(
    text: str,
    target: CompileTarget,
    emit: Callable[[Any, Any], Any],
    generators: dict[tuple[str, str, str], TargetMachine] | None = None,
) -> Any:
    """What `emit` makes of the text. `generators` keeps code generators, whose tables take a millisecond to set up."""
    if architecture(target.triple) not in ("x86", "aarch64"):
        raise CodegenError(1684, f"no code generator for {target.triple}", where=target.triple)
    check_text(text, target)
    with _LLVM:
        key = (target.triple, target.cpu, target.features)
        machine = generators.get(key) if generators is not None else None
        if machine is not None:
            return _emit_locked(text, target, emit, machine)
        machine = _target_machine(target)
        if generators is None:
            with contextlib.closing(machine):
                return _emit_locked(text, target, emit, machine)
        generators[key] = machine
        return _emit_locked(text, target, emit, machine)


def _emit_locked(text: str, target: CompileTarget, emit: Callable[[Any, Any], Any], machine: TargetMachine) -> Any:
    binding = _binding()
    # Everything is closed here, under the lock, even if an error keeps this frame alive. A context for each module:
    # type names of one never rename those of the next.
    with contextlib.ExitStack() as held:
        context = held.enter_context(contextlib.closing(binding.create_context()))
        try:
            module = held.enter_context(contextlib.closing(binding.parse_assembly(text, context=context)))
            module.triple = target.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as problem:
            raise CodegenError(1680, f"LLVM refuses the text: {problem}", where=target.triple) from problem
        return emit(machine, module)
