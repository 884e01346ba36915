"""Intel Alder Lake (performance cores): AVX2 with dot products of 8-bit integers in the VEX encoding.

Source of the feature list: x86-64 psABI, table "Micro-Architecture Levels", and Intel Architecture Instruction Set
Extensions Programming Reference, chapter 1; of the caches: Intel 64 and IA-32 Architectures Optimization Reference
Manual, chapter 2.
"""

from __future__ import annotations

from tilework.machine.cpu import Cache, CpuMachine

MACHINE = CpuMachine(
    name="alderlake",
    triple="x86_64-unknown-linux-gnu",
    cpu="alderlake",
    features="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+avx2,+bmi,+bmi2,"
    "+f16c,+fma,+lzcnt,+movbe,+xsave,+avxvnni",
    vector_bits=256,
    vector_registers=16,
    caches=(Cache(1, 48 << 10, 12), Cache(2, 1280 << 10, 10), Cache(3, 30 << 20, 12, shared_by=24)),
)
