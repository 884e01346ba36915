"""A fresh installation of the package: what a cold figure is measured with.

A wheel is built from this tree and installed into a new environment with its bytecode compiled, as a user has it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from benchmarks.harness.result import MissingPeerError

ROOT = Path(__file__).resolve().parents[2]


def clean_environment() -> dict[str, str]:
    """Return this process's variables without those that change how Python starts or keeps bytecode."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@contextlib.contextmanager
def fresh_install(*packages: str, lock: str = "demo") -> Generator[Path]:
    """Yield the Python of a new environment that holds the package, its dependencies and `packages`.

    Versions come from `requirements/<lock>.txt`. Raises `MissingPeerError` where pip cannot build or install.
    """
    with tempfile.TemporaryDirectory(prefix="tilework-install-") as place:
        folder = Path(place)
        constraints = ROOT / "requirements" / f"{lock}.txt"
        _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", place, str(ROOT))
        (wheel,) = folder.glob("tilework-*.whl")
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder / "environment"))
        python = folder / "environment" / "bin" / "python"
        install = ["install", "--compile", "--constraint", str(constraints)]
        _pip("--python", str(python), *install, str(wheel), *packages)
        home = _run(str(python), "-c", "import tilework; print(tilework.__file__)").strip()
        compiled = list((Path(home).parent / "__pycache__").glob("*.pyc"))
        if folder not in Path(home).parents or not compiled:
            raise RuntimeError(f"the fresh environment uses {home} with {len(compiled)} compiled files")
        yield python


def _pip(*arguments: str) -> None:
    try:
        _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)
    except subprocess.CalledProcessError as failed:
        raise MissingPeerError("a fresh installation", f"pip failed:\n{failed.stderr.strip()[-2000:]}") from None


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd="/", env=clean_environment(), check=True, capture_output=True, text=True)
    return done.stdout
