"""What `pip install .` brings into a fresh environment: bytes downloaded and packages.

Nothing is taken from pip's own cache, so every byte counts that a user without one would download, what builds the
package too; wheels are for this Python and machine. The package itself counts as one of the packages. Afterwards a
graph is compiled and called there, so that nothing that is needed can be left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from benchmarks.harness.install import ROOT, clean_environment
from benchmarks.harness.result import Bar, Figure, MissingPeerError, Options, Result, check_figure

MEGABYTES = 100.0
PACKAGES = 12
WITHOUT_A_NETWORK = ("No matching distribution found", "NewConnectionError", "Temporary failure", "ConnectionError")
"""What pip says where it reaches no index."""

WORKS = """
import numpy as np
import tilework
from tilework.dtypes import float32
from tilework.ops.builder import GraphBuilder

builder = GraphBuilder("installed")
x = builder.input("x", float32, 4, 5)
(y,) = tilework.compile(builder.build([builder.apply("add", x, x)]))(np.ones((4, 5), np.float32))
assert (y == 2).all()
"""


def downloaded(project: Path, folder: Path) -> dict[str, int]:
    """Bytes of each file that installing a project downloads, by name; they come to lie in the folder.

    Raises `MissingPeerError` where pip reaches no index, `RuntimeError` where it fails otherwise.
    """
    folder.mkdir()
    wheels = folder / "own"
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(project))
    (own,) = wheels.glob("*.whl")
    files = folder / "files"
    _pip("download", "--no-cache-dir", "--dest", str(files), str(own))
    tools = folder / "tools"
    _pip("download", "--no-cache-dir", "--dest", str(tools), *_built_with(project))
    found = [path for place in (files, tools) for path in sorted(place.iterdir()) if path.name != own.name]
    return {path.name: path.stat().st_size for path in found}


def _built_with(project: Path) -> list[str]:
    """What pip downloads to build a project, and throws away."""
    about = tomllib.loads((project / "pyproject.toml").read_text())
    return [str(requirement) for requirement in about["build-system"]["requires"]]


def installed(project_wheel: Path, files: Path, environment: Path) -> list[str]:
    """The packages that a fresh environment holds after installing a wheel from downloaded files alone.

    Raises `RuntimeError` where that fails, or where what was installed does not work.
    """
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = environment / "bin" / "python"
    _pip("--python", str(python), "install", "--no-index", "--find-links", str(files), str(project_wheel))
    told = _run(sys.executable, "-m", "pip", "--python", str(python), "list", "--format", "json")
    _run(str(python), "-c", WORKS)
    return sorted(entry["name"] for entry in json.loads(told))


def run(options: Options) -> Result:
    """Once; `options` change nothing."""
    del options
    with tempfile.TemporaryDirectory(prefix="tilework-install-") as place:
        folder = Path(place)
        sizes = downloaded(ROOT, folder / "download")
        (own,) = (folder / "download" / "own").glob("*.whl")
        packages = installed(own, folder / "download" / "files", folder / "environment")
        mine = own.stat().st_size
    total = sum(sizes.values())
    rows = [[name, f"{size / 1e6:.2f}"] for name, size in sorted(sizes.items(), key=lambda item: -item[1])]
    return Result(
        figures=[
            Figure("downloaded", total / 1e6, "MB", Bar("<=", MEGABYTES)),
            Figure("packages", len(packages), "", Bar("<=", PACKAGES)),
            check_figure("a graph is compiled and called there", passed=True),
        ],
        columns=["file", "MB"],
        rows=rows,
        notes=[f"packages: {', '.join(packages)}", f"the package's own wheel: {mine / 1e6:.2f} MB, built here"],
        samples={"bytes": sizes, "packages": packages},
    )


def _pip(*arguments: str) -> None:
    try:
        _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)
    except RuntimeError as failed:
        if any(sign in str(failed) for sign in WITHOUT_A_NETWORK):
            raise MissingPeerError("an index of packages", f"pip reaches none:\n{failed}") from None
        raise


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd="/", env=clean_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:5])} exited with {done.returncode}:\n{done.stderr.strip()[-1500:]}")
    return done.stdout
