"""x86-64-v4: AVX-512 F, BW, CD, DQ, VL. Caches of a common server core.

Source of the feature list: x86-64 psABI, table "Micro-Architecture Levels".
"""

from __future__ import annotations

from tilework.machine.cpu import Cache, CpuMachine

MACHINE = CpuMachine(
    name="x86-64-v4",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v4",
    features="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi,+bmi2,"
    "+f16c,+fma,+lzcnt,+movbe,+xsave,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    vector_bits=512,
    vector_registers=32,
    caches=(Cache(1, 32 << 10, 8), Cache(2, 1 << 20, 8), Cache(3, 32 << 20, 16, shared_by=16)),
)
