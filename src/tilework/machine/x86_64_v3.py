"""x86-64-v3: AVX2, FMA, F16C. Caches of a common server core.

Source of the feature list: x86-64 psABI, table "Micro-Architecture Levels".
"""

from __future__ import annotations

from tilework.machine.cpu import Cache, CpuMachine

MACHINE = CpuMachine(
    name="x86-64-v3",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v3",
    features="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi,+bmi2,"
    "+f16c,+fma,+lzcnt,+movbe,+xsave",
    vector_bits=256,
    vector_registers=16,
    caches=(Cache(1, 32 << 10, 8), Cache(2, 512 << 10, 8), Cache(3, 32 << 20, 16, shared_by=16)),
)
