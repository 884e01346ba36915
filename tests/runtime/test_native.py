"""Running plans natively: results, signals, floating point mode, the interpreter's lock."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tilework.codegen.cpu.gate import gate_text
from tilework.codegen.cpu.jit import Jit, LoadedCode
from tilework.codegen.cpu.llvm import HostTarget, compile_object
from tilework.errors import CodegenError
from tilework.runtime.frame import ERROR_SLOT, FIRST_SLOT, POLL_SLOT, Frame
from tilework.runtime.native import NativeGate

# Drivers: `answer` returns what slot 3 holds; `spin` polls until it is told to stop, or slot 3 times; `fault` sets the
# error word; `halve` multiplies the float at slot 3 by a half.
TEXT = """
declare i32 @tilework_poll(ptr)

define i32 @answer(ptr %frame) {
  %at = getelementptr i64, ptr %frame, i64 3
  %value = load i32, ptr %at
  ret i32 %value
}

define i32 @spin(ptr %frame) {
entry:
  %state_at = getelementptr i64, ptr %frame, i64 2
  %state = load ptr, ptr %state_at
  %count_at = getelementptr i64, ptr %frame, i64 3
  %count = load i64, ptr %count_at
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %more ]
  %stop = call i32 @tilework_poll(ptr %state)
  %asked = icmp ne i32 %stop, 0
  br i1 %asked, label %out, label %more
more:
  %k1 = add i64 %k, 1
  %left = icmp slt i64 %k1, %count
  br i1 %left, label %loop, label %out
out:
  %result = phi i32 [ 7, %loop ], [ 0, %more ]
  ret i32 %result
}

define i32 @fault(ptr %frame) {
  store i64 7735236100099, ptr %frame
  ret i32 1
}

define i32 @halve(ptr %frame) {
  %at = getelementptr i64, ptr %frame, i64 3
  %value = load volatile float, ptr %at
  %half = fmul float %value, 5.0e-01
  store float %half, ptr %at
  ret i32 0
}
"""


@pytest.fixture(scope="module")
def native(jit: Jit) -> NativeGate:
    return NativeGate(jit)


@pytest.fixture(scope="module")
def drivers(jit: Jit, native: NativeGate) -> LoadedCode:
    return jit.load(jit.compile_object(TEXT), ["answer", "spin", "fault", "halve"], uses=[native.code])


def test_results(native: NativeGate, drivers: LoadedCode):
    frame = Frame(4)
    for value in (0, 1, -5, 2**31 - 1):
        frame.words[3] = value
        assert native.run(drivers["answer"], frame.address) == value
        assert native.run_holding(drivers["answer"], frame.address) == value


def test_error_word(native: NativeGate, drivers: LoadedCode):
    frame = Frame(4)
    assert native.run(drivers["fault"], frame.address) == 1
    assert frame.error == (1801, 3)
    assert native.run(drivers["answer"], frame.address) == 0
    assert frame.error is None
    assert frame.words[ERROR_SLOT] == 0


def test_frames():
    frame = Frame(0)
    assert len(frame.words) == FIRST_SLOT
    assert frame.words[POLL_SLOT] != 0
    assert Frame(5, poll_interval_ns=None).words[POLL_SLOT] == 0


def test_uninterruptible_frames(native: NativeGate, drivers: LoadedCode):
    frame = Frame(4, poll_interval_ns=None)
    frame.words[3] = 1000
    assert native.run(drivers["spin"], frame.address) == 0


def test_polls_are_cheap(native: NativeGate, drivers: LoadedCode):
    frame = Frame(4)
    frame.words[3] = 100_000
    start = time.perf_counter()
    assert native.run(drivers["spin"], frame.address) == 0
    assert (time.perf_counter() - start) / 100_000 < 1e-6


class LateError(Exception):
    pass


@pytest.mark.parametrize("holding", [False, True])
def test_handlers_that_raise_end_the_call(native: NativeGate, drivers: LoadedCode, holding: bool):
    frame = Frame(4)
    run = native.run_holding if holding else native.run

    def handler(_number: int, _frame: object) -> None:
        raise LateError("too late")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(3):
            frame.words[3] = 2**40
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            start = time.perf_counter()
            with pytest.raises(LateError, match="too late") as caught:
                run(drivers["spin"], frame.address)
            assert time.perf_counter() - start < 0.2
            assert caught.traceback[-1].name == "handler"
            frame.words[3] = 3
            assert run(drivers["spin"], frame.address) == 0  # the frame can be used again
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_handlers_that_do_not_raise_let_the_call_go_on(native: NativeGate, drivers: LoadedCode):
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: heard.append(number))
    try:
        frame = Frame(4)
        frame.words[3] = 5_000_000
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert native.run(drivers["spin"], frame.address) == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard == [signal.SIGALRM]


def test_other_threads_are_not_interrupted(native: NativeGate, drivers: LoadedCode):
    heard: list[int] = []
    results: list[int] = []

    def work() -> None:
        frame = Frame(4)
        frame.words[3] = 8_000_000
        results.append(native.run(drivers["spin"], frame.address))

    before = signal.signal(signal.SIGALRM, lambda number, _frame: heard.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert results == [0, 0, 0]
    assert heard == [signal.SIGALRM]


def test_control_c():
    script = """
import os, signal, sys, time
from tests.runtime.test_native import TEXT
from tilework.codegen.cpu.jit import Jit
from tilework.runtime.frame import Frame
from tilework.runtime.native import NativeGate
jit = Jit()
native = NativeGate(jit)
code = jit.load(jit.compile_object(TEXT), ["spin"], uses=[native.code])
frame = Frame(4)
frame.words[3] = 2**40
print("running", flush=True)
try:
    native.run(code["spin"], frame.address)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    frame.words[3] = 5
    assert native.run(code["spin"], frame.address) == 0
    print("usable", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.1)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.perf_counter() - start < 0.2
        assert process.stdout.readline() == "usable\n"
        assert process.wait(10) == 0


def test_lock_is_released_while_a_plan_runs(native: NativeGate, drivers: LoadedCode):
    frame = Frame(4, poll_interval_ns=10**15)
    frame.words[3] = 4_000_000  # some 100 ms
    ticks: list[float] = []
    thread = threading.Thread(target=lambda: native.run(drivers["spin"], frame.address))
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
    assert len(ticks) > 20


@pytest.mark.parametrize("mode", [0x9FC0, 0x3F80])  # flush denormals; round down
def test_plans_run_in_ieee_mode(jit: Jit, native: NativeGate, drivers: LoadedCode, mode: int):
    code = jit.load(
        jit.compile_object(
            "declare void @llvm.x86.sse.ldmxcsr(ptr)\ndeclare void @llvm.x86.sse.stmxcsr(ptr)\n"
            "define void @set(i32 %mode) {\n"
            "  %at = alloca i32\n  store i32 %mode, ptr %at\n"
            "  call void @llvm.x86.sse.ldmxcsr(ptr %at)\n  ret void\n}\n"
            "define i32 @get() {\n  %at = alloca i32\n  call void @llvm.x86.sse.stmxcsr(ptr %at)\n"
            "  %mode = load i32, ptr %at\n  ret i32 %mode\n}"
        ),
        ["set", "get"],
    )
    set_mode, get_mode = (
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(code["set"]),
        ctypes.CFUNCTYPE(ctypes.c_int32)(code["get"]),
    )
    tiny = np.array([2.0**-140 + 2.0**-149, 0], np.float32)  # its half lies between two denormals: ties to even
    frame = Frame(4)
    for run in (native.run, native.run_holding):
        frame.words[3] = int(tiny.view(np.int64)[0])
        set_mode(mode)
        try:
            run(drivers["halve"], frame.address)
            after = get_mode()
        finally:
            set_mode(0x1F80)
        assert after & 0xFFC0 == mode
        assert np.array([frame.words[3]], np.int64).view(np.float32)[0] == np.float32(2.0**-141)
    frame.words[3] = int(tiny.view(np.int64)[0])
    native.run(drivers["halve"], frame.address)
    assert np.array([frame.words[3]], np.int64).view(np.float32)[0] == np.float32(2.0**-141)


def test_gate_text_for_other_machines():
    arm = HostTarget("aarch64-unknown-linux-gnu", "generic", "+neon")
    assert compile_object(gate_text(arm.triple), arm)
    with pytest.raises(CodegenError) as caught:
        gate_text("riscv64-unknown-linux-gnu")
    assert caught.value.code == 1684
