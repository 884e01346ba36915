"""The JIT container: objects, symbols, lifetimes, and refusals where LLVM would abort."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from tilework.codegen.cpu.jit import Jit
from tilework.codegen.cpu.llvm import HostTarget, compile_object, emit_assembly, host_target, verify_text
from tilework.codegen.cpu.objects import check_text, symbol_table
from tilework.errors import CodegenError

ADD = "define i32 @add(i32 %a, i32 %b) {\n  %c = add i32 %a, %b\n  ret i32 %c\n}\n"
CALLS = (
    "declare i32 @add(i32, i32)\ndefine i32 @twice(i32 %a) {\n  %c = call i32 @add(i32 %a, i32 %a)\n  ret i32 %c\n}\n"
)
V3 = HostTarget("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx,+avx2,+fma,+sse4.1,+sse4.2,+ssse3,+sse3")
V4 = HostTarget("x86_64-unknown-linux-gnu", "x86-64-v4", V3.features + ",+avx512f,+avx512bw,+avx512vl,+avx512dq")
ARM = HostTarget("aarch64-unknown-linux-gnu", "generic", "+neon,+fp-armv8")


def code_of(caught: pytest.ExceptionInfo[CodegenError]) -> int:
    return caught.value.code


@pytest.fixture(scope="module")
def jit() -> Jit:
    return Jit()


def test_compile_load_run(jit: Jit):
    code = jit.load(jit.compile_object(ADD), ["add"])
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(code["add"])(40, 2) == 42
    assert code.size > 0


def test_libraries_use_each_other(jit: Jit):
    add = jit.load(jit.compile_object(ADD), ["add"])
    twice = jit.load(jit.compile_object(CALLS), ["twice"], uses=[add])
    together = jit.load([jit.compile_object(CALLS), jit.compile_object(ADD)], ["twice"])
    given = jit.load(jit.compile_object(CALLS), ["twice"], imports={"add": add["add"]})
    for code in (twice, together, given):
        assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(code["twice"])(21) == 42


def test_used_code_lives_as_long_as_its_user(jit: Jit):
    add = jit.load(jit.compile_object(ADD), ["add"])
    alive = weakref.ref(add)
    twice = jit.load(jit.compile_object(CALLS), ["twice"], uses=[add])
    del add
    gc.collect()
    assert alive() is not None
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(twice["twice"])(4) == 8
    del twice
    gc.collect()
    assert alive() is None


def test_same_names_in_different_libraries_do_not_meet(jit: Jit):
    first = jit.load(jit.compile_object("define i32 @f() { ret i32 1 }"), ["f"])
    second = jit.load(jit.compile_object("define i32 @f() { ret i32 2 }"), ["f"])
    assert [ctypes.CFUNCTYPE(ctypes.c_int32)(code["f"])() for code in (first, second)] == [1, 2]


def test_unresolved_symbols_are_all_named(jit: Jit):
    text = (
        "declare void @nosuch()\ndeclare void @neither()\n"
        "define void @f() {\n  call void @nosuch()\n  call void @neither()\n  ret void\n}"
    )
    with pytest.raises(CodegenError) as caught:
        jit.load(jit.compile_object(text), ["f"])
    assert code_of(caught) == 1682
    assert "neither" in str(caught.value)
    assert "nosuch" in str(caught.value)


def test_functions_of_the_process_are_not_open_to_generated_code(jit: Jit):
    text = "declare i32 @system(ptr)\ndefine i32 @f() {\n  %r = call i32 @system(ptr null)\n  ret i32 %r\n}"
    with pytest.raises(CodegenError) as caught:
        jit.load(jit.compile_object(text), ["f"])
    assert code_of(caught) == 1682


def test_export_that_does_not_exist(jit: Jit):
    with pytest.raises(CodegenError) as caught:
        jit.load(jit.compile_object(ADD), ["sub"])
    assert code_of(caught) == 1682


def test_copies_are_calls_of_the_host(jit: Jit):
    text = (
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        "define void @copy(ptr %to, ptr %from, i64 %n) {\n"
        "  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)\n  ret void\n}"
    )
    image = jit.compile_object(text)
    table = symbol_table(image)
    assert table is not None
    assert table.undefined == ("memcpy",)
    assert table.defined == ("copy",)
    code = jit.load(image, ["copy"])
    to = ctypes.create_string_buffer(16)
    ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)(code["copy"])(to, b"some bytes", 10)
    assert to.value == b"some bytes"


@pytest.mark.parametrize("text", ["define void @f( {", "define i32 @f() { ret i64 1 }", "nonsense"])
def test_text_that_llvm_refuses(jit: Jit, text: str):
    with pytest.raises(CodegenError) as caught:
        jit.compile_object(text)
    assert code_of(caught) == 1680


def test_damaged_objects(jit: Jit):
    image = jit.compile_object(ADD)
    for damaged in (
        b"",
        b"\x7fELF",
        image[:64],
        image[: len(image) // 2],
        b"\x00" * 200,
        image[:40] + b"\xff" * 8 + image[48:],
    ):
        with pytest.raises(CodegenError) as caught:
            jit.load(damaged, ["add"])
        assert code_of(caught) in (1682, 1683)


@pytest.mark.parametrize(
    ("call", "target", "word"),
    [
        ("<8 x float> @llvm.x86.avx.max.ps.256(<8 x float> %v, <8 x float> %v)", ARM, "aarch64"),
        ("<16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %v, <16 x i32> %v, <16 x i32> %v)", V4, "avx512vnni"),
        ("<16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %v, <16 x i32> %v, <16 x i32> %v)", V3, "avx512vnni"),
        ("<4 x float> @llvm.aarch64.neon.bfdot.v4f32.v8bf16(<4 x float> %v)", ARM, "bf16"),
        ("<4 x float> @llvm.x86.unheard.of(<4 x float> %v)", V4, "no known feature"),
    ],
)
def test_instructions_that_the_target_lacks(call: str, target: HostTarget, word: str):
    with pytest.raises(CodegenError) as caught:
        check_text(f"define void @f() {{\n  %r = call {call}\n  ret void\n}}", target)
    assert code_of(caught) == 1681
    assert word in str(caught.value)


@pytest.mark.parametrize(
    "text", ['module asm "nop"', 'define void @f() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}']
)
def test_inline_assembly_is_refused(text: str):
    with pytest.raises(CodegenError) as caught:
        compile_object(text, V3)
    assert code_of(caught) == 1681


@pytest.mark.parametrize(("target", "word"), [(V3, "ymm"), (V4, "zmm"), (ARM, "v0")])
def test_targets_that_are_emitted_and_not_run(target: HostTarget, word: str):
    text = (
        "define void @f(ptr %p) {\n  %v = load <16 x float>, ptr %p\n  %w = fadd <16 x float> %v, %v\n"
        "  store <16 x float> %w, ptr %p\n  ret void\n}"
    )
    assert symbol_table(compile_object(text, target))
    assert word in emit_assembly(text, target)
    verify_text(text, target)


@pytest.mark.parametrize("triple", ["riscv64-unknown-linux-gnu", "nonsense"])
def test_unknown_targets(triple: str):
    with pytest.raises(CodegenError) as caught:
        compile_object(ADD, HostTarget(triple, "generic", ""))
    assert code_of(caught) == 1684


def test_same_text_gives_the_same_bytes():
    assert compile_object(ADD, host_target()) == compile_object(ADD, host_target())


def test_close_keeps_code_that_is_held():
    jit = Jit()
    code = jit.load(jit.compile_object(ADD), ["add"])
    jit.close()
    gc.collect()
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(code["add"])(1, 2) == 3
    with pytest.raises(CodegenError) as caught:
        jit.load(compile_object(ADD, host_target()), ["add"])
    assert code_of(caught) == 1685
    code.close()
    code.close()
    assert code.closed


def test_closed_code_is_not_linked_with(jit: Jit):
    add = jit.load(jit.compile_object(ADD), ["add"])
    add.close()
    with pytest.raises(CodegenError) as caught:
        jit.load(jit.compile_object(CALLS), ["twice"], uses=[add])
    assert code_of(caught) == 1685


def test_code_in_a_garbage_cycle():
    for _ in range(20):
        jit = Jit()
        holder: dict[str, object] = {"jit": jit, "code": jit.load(jit.compile_object(ADD), ["add"])}
        holder["self"] = holder
        del jit, holder
        gc.collect()


def test_memory_of_closed_code_comes_back(jit: Jit):
    table = '[65536 x i8] c"' + "a" * 65536 + '"'
    image = jit.compile_object(f"@table = constant {table}\ndefine ptr @f() {{ ret ptr @table }}")

    def mapped() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(50):
        jit.load(image, ["f"])
    before = mapped()
    for _ in range(400):
        jit.load(image, ["f"])
    assert mapped() - before < 6_000_000  # what was loaded and closed is over 26 MB


def test_several_threads_compile_and_load(jit: Jit):
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                value = number * 100 + step
                code = jit.load(jit.compile_object(f"define i32 @f() {{ ret i32 {value} }}"), ["f"])
                assert ctypes.CFUNCTYPE(ctypes.c_int32)(code["f"])() == value
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_child_of_a_fork_compiles_while_the_parent_does():
    script = """
import ctypes, os, threading
from tilework.codegen.cpu.jit import Jit
jit = Jit()
def value(number):
    code = jit.load(jit.compile_object(f"define i32 @f() {{ ret i32 {number} }}"), ["f"])
    return ctypes.CFUNCTYPE(ctypes.c_int32)(code["f"])()
stop = False
def busy():
    while not stop:
        value(1)
thread = threading.Thread(target=busy)
thread.start()
for number in range(10):
    child = os.fork()
    if not child:
        os._exit(0 if value(number) == number else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop = True
thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_forks_meet_no_thread_that_generates_code():
    """Several threads generate code all the time; forks take their turn, and children find LLVM free."""
    script = """
import os, threading
from tilework.codegen.cpu.llvm import Generators, compile_object, host_target
lines = "".join(f"  %a{n + 1} = mul i32 %a{n}, {n + 3}\\n" for n in range(2000))
text = "define i32 @f(i32 %a0) {\\n" + lines + "  ret i32 %a2000\\n}\\n"
target, generators = host_target(), Generators()
expected = compile_object(text, target, generators)
stop = False
def busy():
    while not stop:
        assert compile_object(text, target, generators) == expected
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(8):
    child = os.fork()
    if not child:
        os._exit(0 if compile_object(text, target, generators) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop = True
for thread in threads:
    thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
