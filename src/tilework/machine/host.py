"""The machine this process runs on, as LLVM and the operating system describe it."""

from __future__ import annotations

from pathlib import Path

from tilework.errors import CodegenError
from tilework.machine.cpu import Cache, CpuMachine

CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL = (Cache(1, 32 << 10, 8), Cache(2, 1 << 20, 8), Cache(3, 32 << 20, 16))


def detect(caches: Path = CACHE_FOLDER) -> CpuMachine:
    """The host. Where the operating system tells nothing about caches, common sizes are assumed."""
    from llvmlite import binding

    triple = binding.get_process_triple()
    features: str = binding.get_host_cpu_features().flatten()
    have = {f[1:] for f in features.split(",") if f.startswith("+")}
    x86 = triple.partition("-")[0] in ("x86_64", "amd64")
    bits, registers = 128, 32
    if x86:
        bits, registers = (512, 32) if {"avx512f", "avx512vl"} <= have else (256, 16) if "avx2" in have else (128, 16)
    return CpuMachine(
        name="host",
        triple=triple,
        cpu=binding.get_host_cpu_name(),
        features=features,
        vector_bits=bits,
        vector_registers=registers,
        caches=read_caches(caches) or _USUAL,
    )


def check_runs_here(target: CpuMachine) -> None:
    """Raises `CodegenError` 1764 where this processor lacks something that code for `target` may use."""
    host = detect()
    lacking = sorted(target.available - host.available)
    if target.architecture != host.architecture:
        what = f"this processor is {host.architecture}, not {target.architecture}"
    elif lacking:
        what = f"this processor lacks {', '.join(lacking)}"
    else:
        return
    raise CodegenError(1764, f"code for {target.name} cannot run here: {what}", where=target.name)


def read_caches(folder: Path) -> tuple[Cache, ...]:
    """Data and unified caches from sysfs, smallest level first; entries that cannot be read are left out."""
    found: dict[int, Cache] = {}
    try:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        entries = []
    for entry in entries:
        if not entry.name.startswith("index"):
            continue
        try:
            text = {n: (entry / n).read_text().strip() for n in ("level", "type", "size")}
            if text["type"] == "Instruction":
                continue
            cache = Cache(
                int(text["level"]),
                _bytes(text["size"]),
                _number(entry / "ways_of_associativity", 8),
                _number(entry / "coherency_line_size", 64),
                _processors(entry / "shared_cpu_list"),
            )
        except (OSError, ValueError, KeyError):
            continue
        if cache.bytes:
            found[cache.level] = cache
    return tuple(found[level] for level in sorted(found))


def _bytes(text: str) -> int:
    scale = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper())
    return int(text) if scale is None else int(text[:-1]) << scale


def _number(path: Path, otherwise: int) -> int:
    try:
        return int(path.read_text()) or otherwise
    except (OSError, ValueError):
        return otherwise


def _processors(path: Path) -> int:
    """How many processors a list such as `0-3,8` names."""
    try:
        total = 0
        for part in path.read_text().strip().split(","):
            low, _, high = part.partition("-")
            total += int(high or low) - int(low) + 1
        return max(1, total)
    except (OSError, ValueError):
        return 1
