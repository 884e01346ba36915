"""AArch64 (Armv8.2-A with Advanced SIMD, half precision and dot products). Caches of a Neoverse N1 core.

Source: Arm Neoverse N1 Core Technical Reference Manual, "Memory system".
"""

from __future__ import annotations

from tilework.machine.cpu import Cache, CpuMachine

MACHINE = CpuMachine(
    name="aarch64",
    triple="aarch64-unknown-linux-gnu",
    cpu="neoverse-n1",
    features="+neon,+fp-armv8,+fullfp16,+dotprod,+lse,+crc,+rdm",
    vector_bits=128,
    vector_registers=32,
    caches=(Cache(1, 64 << 10, 4), Cache(2, 1 << 20, 8), Cache(3, 32 << 20, 16, shared_by=64)),
)
