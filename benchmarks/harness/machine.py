"""The machine and the versions a measurement was taken with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

PACKAGES = (
    "tilework", "numpy", "llvmlite", "islpy", "ml_dtypes", "onnx", "onnxruntime", "openvino", "torch", "timm",
    "transformers", "iree-base-compiler", "iree-base-runtime", "jax",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are installed here."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return the processor, how many of it this process may use, its caches, memory, load and kernel."""
    text = _read("/proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    memory = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    return {
        "processor": fields.get("model name", platform.processor()),
        "features": fields.get("flags", fields.get("Features", "")),
        "caches": _caches(),
        "processors": len(os.sched_getaffinity(0)),
        "quota": _read("/sys/fs/cgroup/cpu.max").strip(),
        "memory": memory.get("MemTotal", "").strip(),
        "load": os.getloadavg(),
        "system": platform.platform(),
        "variables": {name: value for name, value in os.environ.items() if name.startswith(("TILEWORK_", "OMP_"))},
    }


def _caches() -> list[str]:
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    return [" ".join(_read(folder / name).strip() for name in ("level", "type", "size")) for folder in folders]


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
