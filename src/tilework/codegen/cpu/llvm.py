"""LLVM as a code generator: text to object bytes or assembly, from several threads at a time.

LLVM's binding holds one lock of the process in every call, so that kernels would be compiled one after another. LLVM
itself asks for less: what threads share nothing of, they may do at the same time. Here every module has a context of
its own, and every compilation has a code generator that no other uses meanwhile; only generating code, which takes
nearly all of the time, runs outside the lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from tilework.codegen.cpu.objects import CompileTarget, architecture, check_text
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from llvmlite.binding import TargetMachine


class _Guard:
    """The lock of everything that LLVM does but generating code, and how many threads do that.

    Held across forks, with no thread generating code: a child never finds LLVM in the hands of a thread that it does
    not have.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._idle = threading.Condition(self.lock)
        self._generating: set[int] = set()
        self._forking = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._in_child
            )

    def _before_fork(self) -> None:
        raised = self._take()
        self._forking += 1
        # a signal's handler may fork while this very thread generates code: it is not waited for
        while self._generating - {threading.get_ident()}:
            try:
                self._idle.wait()
            except BaseException as error:  # noqa: BLE001 - raised below; nothing keeps a process from forking
                raised = error
        if raised is not None:
            raise raised

    def _after_fork(self) -> None:
        self._forking -= 1
        self._idle.notify_all()
        self.lock.release()

    def _in_child(self) -> None:
        self._forking = 0  # threads that were about to fork as well do not exist here
        self.lock.release()

    def outside(self, call: Callable[[], Any]) -> Any:
        """What a call that generates code gives; this thread, which holds the lock once, lets go of it meanwhile.

        A thread that forks goes first.
        """
        self._idle.wait_for(lambda: not self._forking)
        self._generating.add(threading.get_ident())
        try:
            self.lock.release()
            return call()
        finally:
            raised = self._take()
            self._generating.discard(threading.get_ident())
            self._idle.notify_all()
            if raised is not None:
                raise raised

    def _take(self) -> BaseException | None:
        """Take the lock once, whatever a signal's handler raises meanwhile, which is given back: callers rely on it."""
        mine = self._is_mine()
        raised: BaseException | None = None
        while True:
            try:
                self.lock.acquire()
            except BaseException as error:  # noqa: BLE001 - raised by the caller
                raised = error
                # it may have been raised just after the lock was taken
                if not mine and not self._is_mine():
                    continue
            return raised

    def _is_mine(self) -> bool:
        return self.lock._is_owned()  # type: ignore[attr-defined]  # noqa: SLF001 - as threading.Condition asks


_GUARD = _Guard()
LLVM_LOCK = _GUARD.lock
"""Hold it while calling LLVM's binding in any other way."""


@dataclass(frozen=True)
class HostTarget:
    """The machine this process runs on, as LLVM describes it (features listed in full)."""

    triple: str
    cpu: str
    features: str


def host_target() -> HostTarget:
    """The host's triple, processor and features, read from LLVM."""
    with LLVM_LOCK:
        found = binding()
        features = found.get_host_cpu_features().flatten()
        return HostTarget(found.get_process_triple(), found.get_host_cpu_name(), features)


class Generators:
    """Code generators that are not in use. Setting one up takes a millisecond for its tables, so they are kept."""

    def __init__(self) -> None:
        self._free: dict[tuple[str, str, str], list[TargetMachine]] = {}

    def take(self, target: CompileTarget) -> TargetMachine:
        """One that nobody else has until it is put back. Only with the lock held."""
        free = self._free.get((target.triple, target.cpu, target.features))
        return free.pop() if free else target_machine(target)

    def put_back(self, target: CompileTarget, generator: TargetMachine) -> None:
        """Only with the lock held."""
        self._free.setdefault((target.triple, target.cpu, target.features), []).append(generator)

    def clear(self) -> None:
        """Only with the lock held."""
        self._free.clear()


def compile_object(text: str, target: CompileTarget, generators: Generators | None = None) -> bytes:
    """Relocatable object code for LLVM text, at code generation level 3 and without optimisation passes.

    Position independent, small code model: constants are read relative to the instruction. Nothing is run or loaded, so
    any x86-64 or AArch64 target will do. Threads: any number at the same time.

    Raises:
        CodegenError: 1680 text refused, 1681 instruction not on the target, 1684 unknown target.
    """
    return _with_module(text, target, _object_bytes, generators)


def emit_assembly(text: str, target: CompileTarget) -> str:
    """The same code as `compile_object`, as assembly text for a reader. Raises the same errors."""
    return _with_module(text, target, lambda machine, module: str(machine.emit_assembly(module)))


def verify_text(text: str, target: CompileTarget) -> None:
    """Read and verify LLVM text without generating code. Raises as `compile_object`."""
    _with_module(text, target, lambda machine, module: None)  # noqa: ARG005


def binding() -> Any:
    """llvmlite's binding with this machine's targets ready (asking again is cheap). Only with the lock held."""
    from llvmlite import binding as found

    found.initialize_native_target()
    found.initialize_native_asmprinter()
    found.initialize_native_asmparser()
    return found


def target_machine(target: CompileTarget) -> TargetMachine:
    """A new code generator. Only with the lock held. Raises `CodegenError` 1684 for a target that LLVM lacks."""
    found = binding()
    if architecture(target.triple) != architecture(found.get_process_triple()):
        found.initialize_all_targets()
        found.initialize_all_asmprinters()
    try:
        kind = found.Target.from_triple(target.triple)
    except RuntimeError as problem:
        raise CodegenError(1684, f"no code generator for {target.triple}: {problem}", where=target.triple) from problem
    return kind.create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small", jit=False
    )


def _with_module(
    text: str, target: CompileTarget, make: Callable[[Any, Any], Any], generators: Generators | None = None
) -> Any:
    """What `make` gives for a code generator and the text's module; it is called with the lock held once."""
    if architecture(target.triple) not in ("x86", "aarch64"):
        raise CodegenError(1684, f"no code generator for {target.triple}", where=target.triple)
    check_text(text, target)
    owner = generators if generators is not None else Generators()
    # Everything is closed here, under the lock, even if an error keeps this frame alive. A context for each module:
    # type names of one never rename those of the next.
    with LLVM_LOCK, contextlib.ExitStack() as held:
        machine = owner.take(target)
        if generators is None:
            held.callback(machine.close)
        else:
            held.callback(owner.put_back, target, machine)
        found = binding()
        context = held.enter_context(contextlib.closing(found.create_context()))
        try:
            module = held.enter_context(contextlib.closing(found.parse_assembly(text, context=context)))
            module.triple = target.triple
            module.data_layout = str(machine.target_data)
            module.verify()
        except RuntimeError as problem:
            raise CodegenError(1680, f"LLVM refuses the text: {problem}", where=target.triple) from problem
        return make(machine, module)


def _object_bytes(machine: Any, module: Any) -> bytes:
    ffi = _ffi()
    generate = _generate()
    with ffi.OutputString() as refusal:
        buffer = _GUARD.outside(lambda: generate(machine, module, 1, refusal))
        if not buffer:
            raise CodegenError(1680, f"LLVM cannot generate code: {refusal}")
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _ffi() -> Any:
    from llvmlite.binding import ffi as found

    return found


@cache
def _generate() -> Any:
    """LLVM's function that generates an object, as the binding declares it but without its lock."""
    ffi = _ffi()
    declared = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    try:
        found = ctypes.CDLL(ffi.lib._name).LLVMPY_TargetMachineEmitToMemory  # noqa: SLF001 - what CDLL calls a file
    except (AttributeError, OSError):
        return declared  # a binding made otherwise: one at a time then
    found.argtypes, found.restype = declared.argtypes, declared.restype
    return found
