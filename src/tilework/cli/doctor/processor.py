"""The processor: which one, what it has, how much of it this process may use, and what else uses it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from tilework.cli.doctor.section import Advice, Section, text_of
from tilework.cli.sizes import in_words
from tilework.errors import UsageError
from tilework.runtime.processors import available_processors, quota, thread_count

if TYPE_CHECKING:
    from tilework.machine.cpu import CpuMachine

_TOLD = (
    "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16", "avx512fp16",
    "avxvnni", "avxvnniint8", "amx-tile", "amx-int8", "amx-bf16", "neon", "dotprod", "i8mm", "bf16", "sve", "sve2",
)  # fmt: skip
"""Features worth a line; the rest is in the facts."""
_STEADY = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose `powersave` raises the frequency where there is work."""


def processor(target: CpuMachine, root: Path = Path("/")) -> Section:
    """The host, as `target` describes it. `root` stands in for the file system's root."""
    info = text_of(root / "proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    model = {key.strip(): value.strip() for key, value in fields.items()}.get("model name", "") or platform.processor()
    advice: list[Advice] = []
    allowed, limit, online = available_processors(root), quota(root), os.cpu_count() or 1
    try:
        threads = thread_count()
    except UsageError:
        threads = None  # told among the variables
    if threads is not None and threads > allowed:
        text = f"{threads} threads are asked for, and this process may use {allowed} processors"
        advice.append(Advice(text, "Unset TILEWORK_NUM_THREADS, or give it a smaller number."))
    if target.architecture == "x86" and target.vector_bits < 256:
        text = "this processor has no AVX2: code uses vectors of 128 bits"
        advice.append(Advice(text, "Run where AVX2 is; a virtual machine may hide it."))
    load = _load()
    if load is not None and load > allowed:
        text = f"the load is {load:.1f} on {allowed} processors: times will vary"
        advice.append(Advice(text, "Measure while nothing else runs."))
    governor, driver = (
        text_of(root / f"sys/devices/system/cpu/cpu0/cpufreq/scaling_{n}") for n in ("governor", "driver")
    )
    if governor == "powersave" and driver not in _STEADY:
        text = "the processor is kept at a low frequency (governor powersave)"
        advice.append(Advice(text, "Choose another governor: `cpupower frequency-set -g performance`."))
    caches = [
        {"level": c.level, "bytes": c.bytes, "ways": c.ways, "line_bytes": c.line_bytes, "shared_by": c.shared_by}
        for c in target.caches
    ]  # fmt: skip
    facts = {
        "model": model, "architecture": platform.machine(), "llvm_cpu": target.cpu, "triple": target.triple,
        "features": sorted(target.available), "vector_bits": target.vector_bits,
        "vector_registers": target.vector_registers, "caches": caches, "online": online, "allowed": allowed,
        "quota": limit, "threads": threads, "load": load, "governor": governor or None,
    }  # fmt: skip
    named = ", ".join(name for name in _TOLD if target.has(name)) or "none of note"
    shown = ", ".join(f"L{c.level} {in_words(c.bytes)}" for c in target.caches)
    within = f", a quota of {limit:g}" if limit is not None else ""
    lines = [
        ("processor", f"{model or 'unknown'} ({platform.machine()}, {target.cpu} to LLVM)"),
        ("vectors", f"{target.vector_registers} of {target.vector_bits} bits; {named}"),
        ("caches", shown),
        (
            "processors",
            f"{online} online, {allowed} allowed{within}; {threads if threads is not None else '?'} threads",
        ),
    ]
    if load is not None or governor:
        known = [f"load {load:.2f}"] if load is not None else []
        lines.append(("now", ", ".join([*known, *([f"governor {governor}"] if governor else [])])))
    return Section("processor", facts, tuple(lines), tuple(advice))


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
