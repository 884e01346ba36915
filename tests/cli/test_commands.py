"""`tilework compile`, `explain` and the group: every option, `--json`, machines, errors, exit codes, traces."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import MakeModel, Run
from tilework.cli.exit_codes import EXIT_CODES
from tilework.cli.progress import working

DOCS = Path(__file__).resolve().parents[2] / "docs"
STAGES = {"graph": "add", "loops": "program", "llvm": "define", "asm": "ret", "plan": "arena"}


def command(*words: str | Path, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tilework", *map(str, words)], text=True, check=False, timeout=60,
        stdout=stdout, stderr=subprocess.PIPE,
    )  # fmt: skip


# -- compile -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_printed(run: Run, model: Path, stage: str) -> None:
    done = run("compile", model, "--emit", stage)
    assert (done.code, done.err) == (0, "")
    assert STAGES[stage] in done.out
    asked = run("compile", model, "--emit", stage, "--json").json
    assert (asked["emit"], asked["machine"], asked["numerics"]) == (stage, "host", "default")
    assert all(part["name"] and part["text"] for part in asked["parts"])
    assert asked["parts"][0]["text"] in done.out


@pytest.mark.parametrize(("name", "word"), [("x86-64-v3", "ymm"), ("x86_64_v4", "ret"), ("aarch64", "v0")])
def test_code_for_any_machine_is_printed(run: Run, model: Path, name: str, word: str) -> None:
    done = run("compile", model, "--emit", "asm", "--machine", name)
    assert done.code == 0
    assert word in done.out
    assert run("compile", model, "--machine", name, "--json").json["machine"] == name.replace("_", "-")


def test_the_machine_of_the_environment(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_MACHINE", "aarch64")
    assert run("compile", model, "--json").json["machine"] == "aarch64"
    assert run("explain", model).out.startswith("machine aarch64,")
    assert run("compile", model, "--machine", "host", "--json").json["machine"] == "host"
    assert run("run", model, "--json").code == 4
    assert run("run", model, "--machine", "host").code == 0


def test_shapes_are_fixed(run: Run, model: Path) -> None:
    assert "N" not in run("compile", model, "--emit", "graph", "--shape", "a=7x3").out
    assert "7, 3" in run("compile", model, "--emit", "graph", "--shape", "a=7x3").out


@pytest.mark.parametrize("words", [["--emit", "wasm"], ["--numerics", "x"], ["--machine", "z80"], ["--region", "0"]])
def test_compile_refuses(run: Run, model: Path, words: list[str]) -> None:
    done = run("compile", model, *words, "--json")
    assert done.code == 2
    assert done.json["error"]["code"] in ("TW1002", "TW1620")


def test_a_package_is_written_and_run(run: Run, model: Path, tmp_path: Path, saved: Any) -> None:
    file = tmp_path / "m.tilework"
    told = run("compile", model, "-o", file, "--json").json
    assert told == {"file": str(file), "bytes": file.stat().st_size}
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = ("--input", f"a={saved('a.npy', array)}", "--input", f"b={saved('b.npy', array * 10)}")
    results: list[Any] = []
    for subject in (model, file):
        done = run("run", subject, *given, "--save", tmp_path / "out.npz")
        assert (done.code, done.err) == (0, "")
        results.append(np.load(tmp_path / "out.npz")["y"])
    np.testing.assert_array_equal(results[0], array * 11)
    np.testing.assert_array_equal(results[1], results[0])
    assert run("run", file, "--json").json["random_inputs"] == ["a", "b"]
    assert run("run", file, "--json").json.keys() >= {"load_ms", "first_call_ms", "second_call_ms"}
    assert "\nload " in run("run", file).out
    assert "TW1002" in run("run", file, "--shape", "a=1x3").err
    assert "TW1002" in run("run", file, "--machine", "x86-64-v3").err
    assert "TW1002" in run("run", file, "--numerics", "default").err
    assert "TW1001" in run("run", file, "--input", "c=x.npy").err
    assert "TW1002" in run("compile", model, "-o", file, "--emit", "plan").err


def test_packages_that_cannot_be_written_or_read(run: Run, model: Path, tmp_path: Path) -> None:
    assert run("compile", model, "-o", tmp_path).code == 1
    assert "TW1901" in run("compile", model, "-o", tmp_path / "none" / "m.tilework").err
    assert run("compile", model, "-o", tmp_path / "m.tilework", "--machine", "aarch64").code == 4
    assert not (tmp_path / "m.tilework").exists()
    done = run("run", tmp_path / "m.tilework")
    assert done.code == 3
    assert "TW1903" in done.err


@pytest.mark.parametrize("name", ["host", "aarch64"])
def test_object_code_goes_to_files_and_pipes(run: Run, model: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "m.o"
    told = run("compile", model, "--emit", "object", "--machine", name, "-o", file, "--json").json
    content = file.read_bytes()
    assert told == {"file": str(file), "bytes": len(content)}
    assert content[:4] == b"\x7fELF"
    piped = subprocess.run(
        [sys.executable, "-m", "tilework", "compile", str(model), "--emit", "object", "--machine", name],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert (piped.stdout, piped.stderr) == (content, b"")


def test_object_code_is_for_no_reader(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("compile", model, "--emit", "object", "--json")
    assert (done.code, done.json["error"]["where"]) == (2, "--emit")
    reading, writing = os.openpty()
    refused = command("compile", model, "--emit", "object", stdout=writing)
    os.close(writing)
    os.close(reading)
    assert refused.returncode == 2
    assert "not for a terminal" in refused.stderr
    assert "-o FILE.o" in refused.stderr


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_goes_to_a_file(run: Run, model: Path, tmp_path: Path, stage: str) -> None:
    file = tmp_path / "stage.txt"
    printed = run("compile", model, "--emit", stage).out
    done = run("compile", model, "--emit", stage, "-o", file)
    assert (done.code, done.err) == (0, "")
    assert file.read_text() == printed
    assert str(file) in done.out
    assert run("compile", model, "--emit", stage, "-o", tmp_path / "none" / "x").code == 1
    assert run("compile", model, "--emit", stage, "-o", "/dev/full").code == 1


# -- explain -----------------------------------------------------------------------------------------------------------
def test_explain_tells_of_every_region(run: Run, model: Path) -> None:
    done = run("explain", model, "--numerics", "strict", "--shape", "a=4x3")
    assert done.code == 0
    assert done.out.startswith("machine host, numerics strict\n  0 ")
    assert "kernels" in done.out.splitlines()[-1]
    found = run("explain", model, "--json").json
    assert [row["region"] for row in found["regions"]] == [0]
    assert found["regions"][0]["operators"] == ["add"]
    assert "loops" not in found["regions"][0]
    assert found["stages_ms"]["kernels"] > 0
    assert found["sizes"] == {"N": 1}
    row = found["regions"][0]
    assert (row["flops_here"], row["bytes_here"], row["bound"], row["measured_ms"]) == (3, 36, "L1", None)
    assert row["predicted_ms"] > 0
    assert "\n      predicted " in run("explain", model).out


def test_explain_times_regions(run: Run, model: Path, tmp_path: Path, saved: Any) -> None:
    given = f"--input=a={saved('a.npy', np.ones((50, 3), np.float32))}"
    found = run("explain", model, "--time", given, "--threads", "1", "--json").json
    assert (found["sizes"], found["threads"], found["random_inputs"]) == ({"N": 50}, 1, ["b"])
    assert found["regions"][0]["measured_ms"] > 0
    assert found["regions"][0]["flops_here"] == 150
    done = run("explain", model, "--time", "--region", "0", given)
    assert "times are for N = 50, " in done.out
    assert "; measured " in done.out
    file = tmp_path / "m.tilework"
    assert run("compile", model, "-o", file).code == 0
    assert "measured" in run("explain", file, "--time", given).out
    assert "measured" not in run("explain", file).out
    assert run("explain", file, "--json").json["regions"][0]["operators"] == ["add"]
    assert run("explain", file, "--region", "0", "--json").json["regions"][0]["loops"] is None
    assert "TW1002" in run("explain", file, "--shape", "a=1x3").err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--threads", "1"], 2, "--time"),
        (["--input", "a=x.npy"], 2, "--time"),
        (["--seed", "1"], 2, "--time"),
        (["--time", "--threads", "0"], 2, "TW1002"),
        (["--time", "--seed", "-1"], 2, "TW1002"),
        (["--time", "--input", "c=x.npy"], 2, "TW1001"),
        (["--time", "--machine", "aarch64"], 4, "TW1764"),
    ],
)
def test_explain_refuses(run: Run, model: Path, words: list[str], code: int, text: str) -> None:
    done = run("explain", model, *words, "--json")
    assert (done.code, done.json["error"]["code"][:2]) == (code, "TW")
    assert text in done.err


def test_explain_tells_of_black_boxes(run: Run, make_model: MakeModel) -> None:
    path = make_model("StringNormalizer", {"a": (2,)}, dtype="STRING")
    (box,) = run("explain", path, "--json").json["black_boxes"]
    assert box["operator"] == "StringNormalizer"
    assert box["reason"]
    assert "black box StringNormalizer at " in run("explain", path).out


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["run", "bench", "compile", "explain"])
def test_a_model_that_cannot_be_read(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\xff\xfe no model")
    for file, code in (("none.onnx", "TW1101"), (".", "TW1101"), ("bad.onnx", "TW1102")):
        done = run(name, tmp_path / file, "--json")
        assert (done.code, done.json["error"]["code"]) == (3, code)
        assert code in done.err


def test_faults_of_a_model_are_listed_in_json(run: Run, make_model: MakeModel) -> None:
    done = run("explain", make_model("StringNormalizer"), "--json")
    assert done.code == 3
    assert done.json["error"]["faults"]
    assert done.json["error"]["faults"][0]["code"].startswith("TW")


def test_expected_errors_leave_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = run("run", "none.onnx")
    assert done.code == 3
    assert "trace" not in done.err
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TILEWORK_TRACE", str(tmp_path / "trace.txt"))
    asked = run("run", "none.onnx")
    assert asked.code == 3
    assert f"trace: {tmp_path / 'trace.txt'}" in asked.err
    assert "FrontendError" in (tmp_path / "trace.txt").read_text()


def test_a_fault_of_ours_is_short_and_leaves_its_trace(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **named: Any) -> None:
        raise KeyError("the wheel came off")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tilework.frontends.compile.lower", broken)
    done = run("explain", model, "--json")
    assert done.code == 70
    assert "Traceback" not in done.err
    assert "the wheel came off" in done.err
    error = done.json["error"]
    assert error["code"] is None
    assert "the wheel came off" in Path(error["trace"]).read_text()
    assert Path(error["trace"]).parent == tmp_path
    monkeypatch.setenv("TILEWORK_TRACE", str(tmp_path / "no" / "folder"))
    inline = run("explain", model)
    assert inline.code == 70
    assert "Traceback" in inline.err


def test_memory_that_is_not_there_is_no_fault_of_ours(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*arguments: Any, **named: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("tilework.frontends.compile.lower", greedy)
    done = run("explain", model, "--json")
    assert (done.code, done.json["error"]["code"]) == (5, "TW1710")


def test_interrupting(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tilework.frontends.compile.lower", interrupted)
    done = run("explain", model)
    assert (done.code, done.out, done.err.strip()) == (130, "", "interrupted")
    done = run("explain", model, "--json")
    assert (done.code, done.err.strip()) == (130, "interrupted")
    error = done.json["error"]
    assert (error["code"], error["message"]) == (None, "interrupted")
    assert error.keys() == run("explain", "nowhere.onnx", "--json").json["error"].keys()


INTERRUPTED_IMPORT = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from tilework.cli.main import main
main(["run", {model!r}, "--json"])
"""


@pytest.mark.parametrize("name", ["click", "numpy", "tilework.cli.failures", "tilework.frontends.compile", "llvmlite"])
def test_interrupting_what_is_being_imported(model: Path, name: str) -> None:
    script = INTERRUPTED_IMPORT.format(name=name, model=str(model))
    done = subprocess.run([sys.executable, "-c", script], text=True, check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (130, "interrupted")
    assert json.loads(done.stdout)["error"]["message"] == "interrupted"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test's own."""
    monkeypatch.setenv("TILEWORK_CACHE", "on")
    monkeypatch.setenv("TILEWORK_CACHE_DIR", str(tmp_path / "kept"))


NEW = ["bench M --against none --rounds 1", "doctor --json", "cache ls"]


@pytest.mark.parametrize(
    "words",
    ["compile M --emit asm", "compile M --emit object", "explain M", "run M --json", "--help", "compile --help", *NEW],
)
@pytest.mark.usefixtures("kept")
def test_a_closed_output_is_told(model: Path, words: str) -> None:
    shell = f'exec "$0" -m tilework {words.replace("M", str(model))} >&-'
    done = subprocess.run(
        ["sh", "-c", shell, sys.executable], text=True, check=False, stderr=subprocess.PIPE, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, "[TW1901] the output cannot be written: it is closed\n")


@pytest.mark.parametrize(
    "words", ["explain M", "compile M --emit asm", "compile M --emit object", "run M --json", "--help", *NEW[:-1]]
)
@pytest.mark.usefixtures("kept")
def test_a_full_disk_is_told_in_one_line(model: Path, words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = command(*words.replace("M", str(model)).split(), stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr == f"[TW1901] the output cannot be written: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.parametrize("words", ["compile M --emit llvm", "compile M --emit object", "explain M --time", *NEW[:-1]])
@pytest.mark.usefixtures("kept")
def test_a_reader_that_has_gone_is_no_news(model: Path, words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = command(*words.replace("M", str(model)).split(), stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_slip_of_the_pen_in_the_environment_is_told(run: Run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_MACHIN", "x86-64-v3")
    done = run("explain", model)
    assert done.code == 0
    assert done.err == "note: nothing reads the environment variable TILEWORK_MACHIN\n"


# -- help and the ways in ----------------------------------------------------------------------------------------------
def test_the_package_is_a_command_and_help_needs_no_llvm(model: Path) -> None:
    done = command("explain", model, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["regions"]
    script = (
        "import sys\nfrom tilework.cli.main import main\nmain(['compile', '--help'])\n"
        "print([name for name in ('llvmlite', 'onnx', 'islpy', 'rich') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.endswith("[]\n")
    assert "x86-64-v3" in shown.stdout
    assert "x86_64" not in shown.stdout


def test_help_and_the_page_name_every_exit_code(run: Run) -> None:
    done = run("--help")
    page = (DOCS / "reference" / "command-line.md").read_text()
    assert done.code == 0
    for code, meaning in EXIT_CODES.items():
        assert f"{code}  {meaning}" in done.out
        assert f"| {code} | {meaning} |" in page


@pytest.mark.parametrize("name", ["run", "bench", "compile", "explain"])
def test_the_page_names_every_option(run: Run, name: str) -> None:
    section = (DOCS / "reference" / "command-line.md").read_text().split(f"## tilework {name}\n")[1].split("\n## ")[0]
    shared = (DOCS / "reference" / "command-line.md").read_text().split("## Options that commands share\n")[1]
    options = {word.rstrip(",") for word in run(name, "--help").out.split() if word.startswith("--")} - {"--help"}
    assert len(options) > 3
    for option in options:
        assert f"`{option}" in section + shared.split("\n## ")[0], option


def test_version_and_wrong_names(run: Run) -> None:
    assert run("--version").out.startswith("tilework, version ")
    assert run("fly").code == 2
    assert run().code == 2


# -- progress ----------------------------------------------------------------------------------------------------------
class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colourless", [True, False])
def test_who_waits_at_a_terminal_sees_a_sign(monkeypatch: pytest.MonkeyPatch, colourless: bool) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if colourless:
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    with working("compiling [model]", patience=0.01):
        time.sleep(0.6)
    assert "compiling [model]" in screen.getvalue()
    assert ("\x1b[32m" in screen.getvalue()) is not colourless


def test_what_is_shown_follows_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    with working("first", patience=0.01) as tell:
        time.sleep(0.4)
        tell("round 2 of [3]")
        time.sleep(0.6)
    assert "first" in screen.getvalue()
    assert "round 2 of [3]" in screen.getvalue()


def test_two_processes_write_one_file(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "m.tilework"
    words = [sys.executable, "-m", "tilework"]
    writers = [
        subprocess.Popen([*words, "compile", str(model), "-o", str(file)], stdout=subprocess.PIPE) for _ in range(3)
    ]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    assert command("run", file).returncode == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("m.tilework")] == ["m.tilework"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_quick_work_and_files_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with working("quick"):
        pass
    assert screen.getvalue() == ""
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with working("to a file", patience=0.0):
        time.sleep(0.05)
    assert file.getvalue() == ""
