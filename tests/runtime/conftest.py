"""Native code for the tests of the runtime: region bodies that record what ran, and a caller that loops."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tilework.codegen.cpu.jit import Jit, LoadedCode
from tilework.runtime.pool import ThreadPool

# `context` of the bodies is an array of int32 counters, one a chunk; of `nested` it is (pool, counters, inner chunks).
TEXT = """
declare void @tilework_pool_run(ptr, ptr, ptr, i32)

define void @count(ptr %context, i32 %chunk, i32 %chunks) {
  %at = getelementptr i32, ptr %context, i32 %chunk
  %old = atomicrmw add ptr %at, i32 1 monotonic
  ret void
}

define void @slow(ptr %context, i32 %chunk, i32 %chunks) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %k1 = add i32 %k, 1
  store volatile i32 %k1, ptr @sink
  %more = icmp slt i32 %k1, 20000
  br i1 %more, label %loop, label %end
end:
  call void @count(ptr %context, i32 %chunk, i32 %chunks)
  ret void
}

define void @nested(ptr %context, i32 %chunk, i32 %chunks) {
  %pool = load ptr, ptr %context
  %counters_at = getelementptr i8, ptr %context, i64 8
  %counters = load ptr, ptr %counters_at
  call void @tilework_pool_run(ptr %pool, ptr @count, ptr %counters, i32 5)
  ret void
}

define void @tiny_times_half(ptr %context, i32 %chunk, i32 %chunks) {
  %at = getelementptr float, ptr %context, i32 %chunk
  %value = load volatile float, ptr %at
  %half = fmul float %value, 5.0e-01
  store float %half, ptr %at
  ret void
}

define void @many(ptr %pool, ptr %function, ptr %context, i32 %chunks, i32 %times) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  call void @tilework_pool_run(ptr %pool, ptr %function, ptr %context, i32 %chunks)
  %k1 = add i32 %k, 1
  %more = icmp slt i32 %k1, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}

@sink = internal global i32 0
"""
BODIES = ("count", "slow", "nested", "tiny_times_half")


@dataclass
class Regions:
    """A pool and native code that uses it."""

    jit: Jit
    pool: ThreadPool
    code: LoadedCode
    many: Callable[..., Any]

    def run(self, body: str, context: int, chunks: int, times: int = 1) -> None:
        """Run `times` regions of `chunks` chunks from one native loop."""
        self.pool.ensure()
        self.many(self.pool.address, self.code[body], context, chunks, times)

    def counts(self, body: str, chunks: int, times: int) -> np.ndarray[Any, Any]:
        """How often each chunk ran."""
        counters = np.zeros(chunks, np.int32)
        self.run(body, counters.ctypes.data, chunks, times)
        return counters


def make_regions(jit: Jit, pool: ThreadPool) -> Regions:
    code = jit.load(jit.compile_object(TEXT), [*BODIES, "many"], uses=[pool.code])
    signature = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32
    )
    return Regions(jit, pool, code, signature(code["many"]))


@pytest.fixture(scope="module")
def jit() -> Jit:
    return Jit()


@pytest.fixture
def regions(jit: Jit):
    pool = ThreadPool(jit, threads=3)
    yield make_regions(jit, pool)
    pool.close()
