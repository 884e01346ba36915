"""Pages of models: sound and harmless markup, everything on them that should be, measured and predicted."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.frontends.onnx.models import model
from tests.report.pages import HOSTILE, KNOWN, Reader, hostile, hostile_profile, profile_of
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.cost.roofline import Roofline
from tilework.errors import RunError, UsageError
from tilework.frontends.compile import load_graph
from tilework.report.page import build
from tilework.report.page.build import POLICY, model_page
from tilework.report.page.facts import EngineTimes, Subject
from tilework.report.page.markup import Markup, element, plain, short
from tilework.report.page.scales import Linear, Logarithmic
from tilework.report.page.words import bytes_of, count, counted, digits, flops, seconds
from tilework.runtime.profile import Profile

SECTIONS = ("regions", "roofline", "memory", "schedules", "stages", "numbers")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reports.md"


@pytest.fixture(scope="module")
def profile() -> Profile:
    return hostile_profile()


@pytest.fixture(scope="module")
def page(profile: Profile) -> str:
    return model_page(profile, title=HOSTILE[0], roofline=KNOWN)


def predicted(proto: Any, **sizes: int) -> Subject:
    done = lower_graph(load_graph(proto), CompileOptions(machine="aarch64"))
    return Subject(done.explanation, (done.plan,), sizes, 1)


def sound(page: str) -> Reader:
    read = Reader(page)
    assert read.faults == []
    assert [name for name, times in read.identifiers.items() if times > 1] == []
    assert read.referred <= set(read.identifiers)
    return read


def test_names_of_the_model_are_text(page: str, profile: Profile) -> None:
    read = sound(page)
    assert read.tags["script"] == read.tags["img"] == read.tags["iframe"] == 0
    assert read.events == []
    assert read.addresses == ["data:,"]
    assert page.count(POLICY.replace("'", "&#x27;")) == 1
    origins = {step.origin for step in profile.steps}
    assert any("<script>" in origin for origin in origins)
    for origin in origins:
        assert plain(origin) in read.text
    for hidden in ("\x00", "\u202e", "\x1b"):
        assert hidden not in page
    page.encode()  # nothing in it is half a character


def test_everything_is_on_it(page: str, profile: Profile) -> None:
    read = sound(page)
    assert set(SECTIONS) <= set(read.identifiers)
    assert page.startswith('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">')
    for number, region in enumerate(profile.explanation.regions):
        assert f"{number} {region.name}" in read.text
    for stage, _ in profile.explanation.compile_milliseconds:
        assert stage in read.text
    assert read.tags["svg"] == 6  # three charts, each for two widths
    assert read.tags["desc"] == 6
    assert len(re.findall(r"<circle[^>]*class=\"point", page)) == 2 * sum(1 for step in profile.steps if step.flops)
    assert read.tags["caption"] == read.tags["table"] >= 4
    for words in ("parallel", "vectorized", "touches", "lower bound", "peak", "median of 2"):
        assert words in read.text


def test_the_same_profile_gives_the_same_bytes(page: str, profile: Profile) -> None:
    assert model_page(profile, title=HOSTILE[0], roofline=KNOWN) == page


def test_the_chosen_region_is_open_and_first(profile: Profile) -> None:
    for number, region in enumerate(profile.explanation.regions):
        text = model_page(profile, roofline=KNOWN, region=number)
        part = text.split('id="schedules"')[1].split("</section>")[0]
        first = part[part.index("<details") : part.index("</summary>")]
        assert first.startswith("<details open>")
        assert f"{number} {region.name}" in first
        assert part.count("<details open>") == 1
    for wrong in (-1, len(profile.explanation.regions)):
        with pytest.raises(UsageError) as caught:
            model_page(profile, roofline=KNOWN, region=wrong)
        assert caught.value.code == 1002


def test_what_did_not_run_is_predicted() -> None:
    text = model_page(predicted(hostile(), n=64), title="t")
    read = sound(text)
    assert "Predicted: nothing was run" in read.text
    assert "assumed from the machine's data" in read.text
    assert "aarch64" in read.text
    assert "Measured: medians" not in read.text
    unknown = sound(model_page(predicted(hostile())))  # not even the sizes
    assert "not known" in unknown.text


def test_engines_stand_first(profile: Profile) -> None:
    engines = (
        EngineTimes("tilework", "1", 1e-3, 2e-3, 3e-3, "", 0.5, 4e-3, 1 << 20),
        EngineTimes(HOSTILE[0], "2", -math.inf, 8e-3, math.inf, "0.25 [0.2, 0.3]", 0.1, 9e-3, None),
    )
    read = sound(model_page(profile, roofline=KNOWN, engines=engines))
    assert "2.00 ms [1.00 ms, 3.00 ms]" in read.text
    assert "8.00 ms" in read.text
    assert "0.25 [0.2, 0.3]" in read.text
    assert read.text.index("Beside other engines") < read.text.index("Time by region")


NODES = {
    "identity": [helper.make_node("Identity", ["x"], ["y"])],
    "moved": [helper.make_node("Transpose", ["x"], ["y"])],
    "one": [helper.make_node("Exp", ["x"], ["y"])],
    "measured": [helper.make_node("NonZero", ["x"], ["p"]), helper.make_node("Cast", ["p"], ["y"], to=1)],
    "box": [
        helper.make_node("Sin", ["x"], ["s"]), helper.make_node("Loop", ["n", "go", "s"], ["y"], body=helper.make_graph(
            [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["d"])], "body",
            [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []),
             helper.make_tensor_value_info("v", 1, None)],
            [helper.make_tensor_value_info("d", 9, []), helper.make_tensor_value_info("w", 1, None)],
        )),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_small_and_strange_models(name: str, rows: int) -> None:
    held = {"n": np.array(3), "go": np.array(True)} if name == "box" else {}
    proto = model(NODES[name], {"x": (np.float32, ["n_rows", 3])}, ["y"], held, 18)
    read = sound(model_page(profile_of(proto, np.ones((rows, 3), np.float32)), roofline=KNOWN))
    assert set(SECTIONS) <= set(read.identifiers)


def test_models_with_black_boxes_have_an_arena_for_each_part() -> None:
    from tests.executable.test_profile import boxed

    profile = boxed().profile(np.array([-1, 2, -3], np.float32), calls=1)
    read = sound(model_page(profile, roofline=KNOWN))
    assert "black box" in read.text
    assert "nothing is fused across black boxes" in read.text


def test_rooflines(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(threads: int) -> Roofline:
        return replace(KNOWN, flops_per_second=123e9, threads=threads)

    monkeypatch.setattr(build, "probe", measured)
    assert "123 Gflop/s" in model_page(profile)
    assert "123 Gflop/s" in model_page(profile, roofline="probe")
    assert "assumed from the machine" in model_page(profile, roofline="assumed")

    def fails(threads: int) -> Any:
        raise RunError(1765, "no")

    monkeypatch.setattr(build, "probe", fails)
    assert "assumed from the machine" in model_page(profile)
    with pytest.raises(RunError):
        model_page(profile, roofline="probe")
    wrong: Any = "guessed"
    with pytest.raises(UsageError) as caught:
        model_page(profile, roofline=wrong)
    assert caught.value.code == 1771


def test_the_documented_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = model([helper.make_node("Exp", ["x"], ["y"])], {"x": (np.float32, [1, 64])}, ["y"], {}, 18)
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(block, str(PAGE), "exec"), {})
    sound((tmp_path / "report.html").read_text())
    assert (tmp_path / "calls.json").stat().st_size > 500


# -- the pieces --------------------------------------------------------------------------------------------------------
def test_markup() -> None:
    assert element("a", "<", Markup("<b>"), None, href='"&', open=True, hidden=False, x=1.0) == (
        '<a href="&quot;&amp;" open x="1">&lt;<b></a>'
    )
    assert element("meta", name="x") == '<meta name="x">'
    assert element("p", class_="c", aria_label="l") == '<p class="c" aria-label="l"></p>'
    assert plain("aä\n\t€") == "aä\n\t€"
    assert plain("\x00\u202e\ud800") == "\\x00\\u202e\\ud800"
    assert (short(1.005), short(-0.001), short(12.5), short(3)) == ("1", "0", "12.5", "3")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (seconds(0.0098), "9.80 ms"), (seconds(0), "0.00 ns"), (seconds(0.9999), "1.00 s"), (seconds(123), "123 s"),
        (seconds(9.996e-4), "1.00 ms"), (bytes_of(0), "0 B"), (bytes_of(999), "999 B"), (bytes_of(1024), "1.00 KiB"),
        (bytes_of(3 << 20), "3.00 MiB"), (flops(1.445e9), "1.45 Gflop"), (count(17), "17"), (count(2400), "2.40 k"),
        (digits(math.inf), "–"), (digits(99.96), "100"), (counted(["a", "b", "a"]), "a ×2, b"), (counted([]), ""),
    ],
)  # fmt: skip
def test_words(text: str, wanted: str) -> None:
    assert text == wanted


@pytest.mark.parametrize("high", [0.0, 1e-3, 1.0, 7.0, 68.0, 1e9])
@pytest.mark.parametrize("base", [2, 10])
def test_linear_scales(high: float, base: int) -> None:
    scale = Linear(high, 10, 110, 4, base)
    ticks = scale.ticks()
    assert ticks[0] == 0
    assert all(0 <= tick <= high * 1.000001 for tick in ticks)
    assert scale(0) == 10
    if high:
        assert 2 <= len(ticks) <= 12
        assert scale(high) == pytest.approx(110)


@pytest.mark.parametrize(("low", "high"), [(0.1, 100), (3, 4), (1e-6, 1e12), (0.5, 0.7)])
def test_logarithmic_scales(low: float, high: float) -> None:
    scale = Logarithmic(low, high, 110, 10)
    assert scale(low) == pytest.approx(110)
    assert scale(high) == pytest.approx(10)
    assert scale(math.sqrt(low * high)) == pytest.approx(60)
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in scale.ticks())
