"""Write the pinned lock files of this folder: `python requirements/lock.py`.

One resolution over everything gives one version per package, so that every group can be installed into the same
environment; then each group is resolved again under those versions and written to `<group>.txt`. pip does the
resolving (its dry run), so a wheel cache that pip is told of (PIP_FIND_LINKS, pip.conf) serves here too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The processor build of PyTorch has a local version that PyPI's CUDA build does not match.
TORCH = "torch==2.13.0+cpu"

BUILD = ["hatchling", "editables"]
CORE = ["click", "islpy", "llvmlite", "ml_dtypes", "numpy", "rich", *BUILD]
ONNX = ["onnx"]
TEST = [*CORE, *ONNX, "hypothesis", "pytest"]
# What the package of the demonstration's text reader imports. Its wheel asks for the OpenCV that needs a display's
# libraries, and for a Python below 3.13, so it is not installed (see examples/reader.py).
READER = ["opencv-python-headless", "pillow", "pyclipper", "pyyaml", "shapely"]
DEMO = [*CORE, *ONNX, "onnxruntime==1.32.0", *READER]
GROUPS = {
    "test": TEST,
    "demo": DEMO,
    "check": [*TEST, "import-linter", "pre-commit", "pyright[nodejs]", "ruff"],
    "docs": [*CORE, "furo", "myst-parser", "sphinx"],
    "suites": [*TEST, "onnxruntime==1.32.0", "sympy", *READER],
    "peers": [
        *DEMO,
        TORCH,
        "iree-base-compiler==3.13.0",
        "iree-base-runtime==3.13.0",
        "jax==0.10.2",
        "openvino==2026.4.1",
        "timm==1.0.31",
        "torchvision==0.28.0",
        "transformers==5.24.0",
    ],
}


def resolve(requirements: list[str], constraints: Path | None) -> dict[str, str]:
    """Return what pip would install for the requirements: package name to version."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), *(["--constraint", str(constraints)] if constraints else [])]
        subprocess.run([*command, *requirements], check=True)
        installed = json.loads(report.read_text())["install"]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in installed}


def lines(pins: dict[str, str]) -> list[str]:
    """Return the lines of a lock file."""
    return [f"{name}=={pins[name]}" for name in sorted(pins, key=str.lower)]


def main() -> None:
    """Resolve everything together, then write one file a group."""
    everything = resolve(sorted({name for group in GROUPS.values() for name in group}), None)
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(lines(everything)) + "\n")
        for group, requirements in GROUPS.items():
            pins = resolve(requirements, constraints)
            head = f"# {group}: written by requirements/lock.py; change the groups there, then run `make lock`."
            (HERE / f"{group}.txt").write_text("\n".join([head, *lines(pins)]) + "\n")
            print(f"{group}.txt: {len(pins)} packages")


if __name__ == "__main__":
    main()
