"""`tilework run`: inputs, outputs, files and refusals."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

from tests.cli.conftest import MakeModel, Run
from tilework.cli.writing import save_arrays

Save = Callable[[str, Any], Path]
A = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_random_inputs_are_named_and_repeat(run: Run, model: Path) -> None:
    first = run("run", model, "--seed", "3")
    assert first.code == 0
    lines = first.out.splitlines()
    assert lines[0] == "random inputs (seed 3): a, b"
    assert lines[1].startswith("y: float32[1, 3]")
    assert "second call" in lines[2]
    assert run("run", model, "--seed", "3").out.splitlines()[1] == lines[1]
    assert run("run", model, "--seed", "4").out.splitlines()[1] != lines[1]


def test_inputs_from_files_and_outputs_to_one(run: Run, model: Path, saved: Save, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    inputs = [f"--input=a={saved('a.npy', A)}", f"--input=b={saved('b.npy', 2 * A)}"]
    done = run("run", model, *inputs, "--save", out, "--threads", "1", "--numerics", "strict")
    assert (done.code, done.err) == (0, "")
    with np.load(out) as arrays:
        assert (arrays["y"] == 3 * A).all()
    assert "random" not in done.out


def test_one_input_given_fixes_the_size_of_the_other(run: Run, model: Path, saved: Save) -> None:
    done = run("run", model, "--input", f"a={saved('a.npy', A)}", "--json")
    assert done.json["outputs"] == {"y": {"dtype": "float32", "shape": [4, 3], "nan": 0}}
    assert done.json["random_inputs"] == ["b"]


def test_json_tells_of_shapes_nans_and_times(run: Run, model: Path, saved: Save) -> None:
    a = A.copy()
    a[1, 1] = np.nan
    done = run("run", model, "--input", f"a={saved('a.npy', a)}", "--shape", "b=4x3", "--json")
    assert done.json["outputs"]["y"] == {"dtype": "float32", "shape": [4, 3], "nan": 1}
    assert done.json["machine"] == "host"
    assert min(done.json[key] for key in ("compile_ms", "first_call_ms", "second_call_ms")) > 0


def test_bfloat16_goes_to_a_file_and_back(run: Run, make_model: MakeModel, tmp_path: Path) -> None:
    path = make_model("Neg", {"x": ("N",)}, dtype="BFLOAT16")
    x = np.array([1, -2, np.nan], np.float32).astype(ml_dtypes.bfloat16)
    given, out = tmp_path / "x.npy", tmp_path / "out.npz"
    np.save(given, x.view("V2"))
    done = run("run", path, f"--input=x={given}", "--save", out, "--json")
    assert done.json["outputs"]["y"] == {"dtype": "bfloat16", "shape": [3], "nan": 1}
    with np.load(out) as arrays:
        got = arrays["y"].view(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(got, [-1, 2, np.nan], equal_nan=True)


@pytest.mark.parametrize("name", ["file", "allow_pickle", "self", "class", "a/b", "/x", "..", "y.npy", "ein ü", "0"])
def test_outputs_may_be_called_anything(
    run: Run, make_model: MakeModel, saved: Save, tmp_path: Path, name: str
) -> None:
    path, out = make_model("Add", {"def": (4, 3), "args": (4, 3)}, [name]), tmp_path / "out.npz"
    done = run("run", path, f"--input=def={saved('a.npy', A)}", f"--input=args={saved('a.npy', A)}", "--save", out)
    assert done.code == 0, done.err
    with np.load(out) as arrays:
        assert (arrays[name.removesuffix(".npy") if name not in arrays.files else name] == 2 * A).all()


def test_names_that_look_alike_stay_apart(tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    save_arrays(out, {"a/b": np.array(1), "a_b": np.array(2)})
    with np.load(out) as arrays:
        assert (int(arrays["a/b"]), int(arrays["a_b"])) == (1, 2)


def test_names_and_paths_with_equals_signs(run: Run, make_model: MakeModel, saved: Save) -> None:
    path = make_model("Add", {"a=1": (4, 3), "a": (4, 3)})
    one, other = saved("x=1.npy", A), saved("y.npy", A)
    done = run("run", path, f"--input=a=1={one}", f"--input=a={one}", "--json")
    assert done.code == 0, done.err
    assert done.json["random_inputs"] == []
    assert run("run", path, f"--input=a=1={other}", "--json").json["random_inputs"] == ["a"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_saved_files_have_the_mode_that_the_umask_gives(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        save_arrays(tmp_path / "out.npz", {"y": A})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.npz").stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["out.npz"]  # noqa: PTH208 - names are what is asked for


def test_saving_over_a_link_and_into_a_device(tmp_path: Path) -> None:
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    target.write_text("old")
    link.symlink_to(target)
    save_arrays(link, {"y": A})
    assert link.is_symlink()
    with np.load(target) as arrays:
        assert (arrays["y"] == A).all()
    save_arrays(Path(os.devnull), {"y": A})
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("where", ["nowhere/out.npz", ".", "a.npy/out.npz"])
def test_what_cannot_be_written_is_told_before_anything_runs(
    run: Run, model: Path, saved: Save, tmp_path: Path, where: str
) -> None:
    saved("a.npy", A)
    done = run("run", model, "--save", tmp_path / where)
    assert done.code == 1
    assert "[TW1901]" in done.err
    assert done.out == ""


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b"", "No data"), (b"hello", ".npy"), (b"\x93NUMPY\x01\x00\xff\xff", ".npy")],
)
def test_an_input_file_that_cannot_be_read(
    run: Run, model: Path, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "x.npy"
    if content is not None:
        path.write_bytes(content)
    done = run("run", model, "--input", f"a={path}")
    assert done.code == 3
    assert "[TW1902]" in done.err
    assert words in done.err
    assert "numpy.save" in done.err
    assert "extent" not in done.err


def test_an_archive_or_a_pickle_is_no_input(run: Run, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", A)
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    for name in ("x.npz", "o.npy", "."):
        done = run("run", model, "--input", f"a={tmp_path / name}")
        assert done.code == 3
        assert "[TW1902]" in done.err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--input", "a"], 2, "TW1002"),
        (["--input", "=x.npy"], 2, "TW1002"),
        (["--input", "a="], 2, "TW1002"),
        (["--input", "c=x.npy"], 2, "TW1001"),
        (["--shape", "a"], 2, "TW1002"),
        (["--shape", "a=1x"], 2, "TW1002"),
        (["--shape", "a=-1x3"], 2, "TW1002"),
        (["--shape", "a=" + "9" * 5000], 2, "TW1002"),
        (["--shape", "=1"], 2, "TW1002"),
        (["--shape", "a=1x3", "--shape", "a=2x3"], 2, "twice"),
        (["--shape", "c=1"], 3, "TW1118"),
        (["--shape", "a=1x3x4"], 3, "TW1118"),
        (["--shape", "a=1x4"], 3, "TW1118"),
        (["--shape", "a=1x3", "--shape", "b=2x3"], 3, "TW1118"),
        (["--threads", "0"], 2, "TW1002"),
        (["--threads", "-1"], 2, "TW1002"),
        (["--threads", "9999"], 2, "TW1002"),
        (["--threads", "two"], 2, "two"),
        (["--seed", "-1"], 2, "TW1002"),
        (["--memory-limit", "much"], 2, "TW1002"),
        (["--memory-limit", "0"], 2, "TW1002"),
        (["--memory-limit", "11"], 5, "TW1710"),
        (["--numerics", "sloppy"], 2, "sloppy"),
        (["--machine", "z80"], 2, "TW1620"),
        (["--machine", "aarch64"], 4, "TW1764"),
        (["--shape", f"a={2**42}x3"], 5, "TW1710"),
        (["--frobnicate"], 2, "frobnicate"),
    ],
)
def test_refusals_by_exit_code(run: Run, model: Path, words: list[str], code: int, text: str) -> None:
    done = run("run", model, *words)
    assert (done.code, done.out) == (code, "")
    assert text in done.err
    assert "Traceback" not in done.err
    asked = run("run", model, *words, "--json")
    assert asked.code == code
    assert set(asked.json["error"]) >= {"code", "message", "where", "do", "faults"}
    assert asked.json["error"]["code"].startswith("TW")


def test_an_input_given_twice(run: Run, model: Path, saved: Save) -> None:
    path = saved("a.npy", A)
    done = run("run", model, f"--input=a={path}", f"--input=a={path}")
    assert done.code == 2
    assert "twice" in done.err


def test_an_array_that_does_not_fit(run: Run, model: Path, saved: Save) -> None:
    done = run("run", model, f"--input=a={saved('a.npy', A.astype(np.float64))}", "--json")
    assert (done.code, done.json["error"]["code"]) == (3, "TW1702")
    done = run("run", model, f"--input=a={saved('a.npy', A)}", f"--input=b={saved('b.npy', A[:2])}", "--json")
    assert (done.code, done.json["error"]["code"]) == (3, "TW1706")


def test_an_index_out_of_range_is_a_failure_of_the_run(run: Run, make_model: MakeModel, saved: Save) -> None:
    path = make_model("Gather", {"data": (3,), "indices": (2,)}, dtype="INT64")
    done = run("run", path, f"--input=indices={saved('i.npy', np.array([0, 7]))}", "--json")
    assert (done.code, done.json["error"]["code"]) == (5, "TW1801")


def test_a_memory_limit_holds_for_a_model_and_a_package(run: Run, model: Path, saved: Save, tmp_path: Path) -> None:
    given = [f"--input={name}={saved(f'{name}.npy', A)}" for name in "ab"]
    assert run("run", model, *given, "--memory-limit", "1K").code == 0
    refused = run("run", model, *given, "--memory-limit", "47", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (5, "TW1710")
    file = tmp_path / "m.tilework"
    assert run("compile", model, "-o", file).code == 0
    assert run("run", file, *given, "--memory-limit", "48").code == 0
    refused = run("run", file, *given, "--memory-limit", "47")
    assert refused.code == 5
    assert "the limit is 47 bytes" in refused.err


def test_a_model_that_is_compiled_for_what_a_call_brings(run: Run, make_model: MakeModel, saved: Save) -> None:
    path = make_model("Reshape", {"x": ("N",), "shape": (2,)}, dtype="FLOAT")
    import onnx

    proto = onnx.ModelProto.FromString(path.read_bytes())
    proto.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    path.write_bytes(proto.SerializeToString())
    x, shape = saved("x.npy", A.ravel()), saved("shape.npy", np.array([3, 4]))
    done = run("run", path, f"--input=x={x}", f"--input=shape={shape}", "--json")
    assert done.code == 0, done.err
    assert done.json["outputs"]["y"]["shape"] == [3, 4]


def test_an_initialiser_from_a_file(run: Run, saved: Save, tmp_path: Path) -> None:
    source = "g (float[n] x, float[1] w) => (float[?] y) <float[1] w = {3}> { y = Mul(x, w) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {source}')
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    out, x = tmp_path / "out.npz", A[0]
    inputs = [f"--input=w={saved('w.npy', np.array([5], np.float32))}", f"--input=x={saved('x.npy', x)}"]
    done = run("run", path, *inputs, "--save", out)
    assert (done.code, done.err) == (0, "")
    with np.load(out) as arrays:
        assert (arrays["y"] == 5 * x).all()
    assert run("run", path, inputs[1], "--save", out).code == 0
    with np.load(out) as arrays:
        assert (arrays["y"] == 3 * x).all()
    assert run("compile", path, "-o", tmp_path / "m.tilework").code == 0
    refused = run("run", tmp_path / "m.tilework", *inputs)
    assert refused.code
    assert "TW1701" in refused.err
