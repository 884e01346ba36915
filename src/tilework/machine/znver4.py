"""AMD Zen 4: AVX-512 with dot products of 8-bit integers and of bfloat16.

Source of the feature list: x86-64 psABI, table "Micro-Architecture Levels", and AMD64 Architecture Programmer's Manual,
volume 3, appendix D; of the caches: Software Optimization Guide for the AMD Zen 4 Microarchitecture.
"""

from __future__ import annotations

from tilework.machine.cpu import Cache, CpuMachine

MACHINE = CpuMachine(
    name="znver4",
    triple="x86_64-unknown-linux-gnu",
    cpu="znver4",
    features="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi,+bmi2,"
    "+f16c,+fma,+lzcnt,+movbe,+xsave,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512ifma,+avx512vbmi,"
    "+avx512vbmi2,+avx512vnni,+avx512bitalg,+avx512vpopcntdq,+avx512bf16",
    vector_bits=512,
    vector_registers=32,
    caches=(Cache(1, 32 << 10, 8), Cache(2, 1 << 20, 8), Cache(3, 32 << 20, 16, shared_by=16)),
)
