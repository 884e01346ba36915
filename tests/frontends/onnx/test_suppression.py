# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""NonMaxSuppression against the standard's words in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilework
from tests.frontends.onnx.models import model

I64, F = TensorProto.INT64, TensorProto.FLOAT


def suppressed(boxes: Any, scores: Any, most: int, overlap: float, least: float | None, center: int) -> list[Any]:
    """By the standard's words, in float32 as both backends compute."""
    found: list[Any] = []
    sides = boxes.astype(np.float32)
    if center:
        x, y, w, h = (sides[..., n] for n in range(4))
        sides = np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    low = np.minimum(sides[..., :2], sides[..., 2:])
    high = np.maximum(sides[..., :2], sides[..., 2:])
    area = (high - low).prod(-1)
    for b, c in np.ndindex(*scores.shape[:2]):
        chosen: list[int] = []
        keys = np.where(np.isnan(scores[b, c]), -np.inf, -scores[b, c])  # NaN first
        for i in np.argsort(keys, kind="stable"):
            if len(chosen) >= most or (least is not None and not scores[b, c, i] > least):
                continue
            common = [np.maximum(np.minimum(high[b, i], high[b, j]) - np.maximum(low[b, i], low[b, j]), 0).prod()
                      for j in chosen]  # fmt: skip
            shares = [v / (area[b, i] + area[b, j] - v) if v > 0 else 0 for v, j in zip(common, chosen, strict=True)]
            if all(not share > np.float32(overlap) for share in shares):
                chosen.append(int(i))
        found += [[b, c, i] for i in chosen]
    return found


@pytest.mark.parametrize(("least", "center"), [(None, 1), (0.3, 0)])
def test_suppression(least: float | None, center: int) -> None:
    operands = "boxes scores most overlap" + (" least" if least is not None else "")
    inputs: dict[str, Any] = {
        "boxes": (F, ("b", "n", 4)), "scores": (F, ("b", "c", "n")), "most": (I64, (1,)), "overlap": (F, (1,)),
    }  # fmt: skip
    if least is not None:
        inputs["least"] = (F, (1,))
    made = model(
        [helper.make_node("NonMaxSuppression", operands.split(), ["y"], center_point_box=center)], inputs, ["y"]
    )
    executable = tilework.compile(made)
    for (batches, classes, count), most, overlap in (
        ((1, 1, 30), 3, 0.5), ((2, 3, 17), 3, 0.3), ((1, 2, 90), 1000, 0.1), ((1, 1, 1), 5, 0.0), ((1, 2, 0), 5, 0.5),
        ((1, 1, 9), 0, 0.5),
    ):  # fmt: skip
        generator = np.random.default_rng([batches, classes, count])
        boxes = generator.integers(0, 12, (batches, count, 4)).astype(np.float32)
        scores = (generator.integers(0, 20, (batches, classes, count)) / 20).astype(np.float32)
        given = [boxes, scores, np.array([most]), np.array([overlap], np.float32)]
        given += [] if least is None else [np.array([least], np.float32)]
        (found,) = executable(*given)
        wanted = suppressed(boxes, scores, most, overlap, least, center)
        np.testing.assert_array_equal(found, np.array(wanted, np.int64).reshape(-1, 3))


def clusters(g: np.random.Generator, batches: int, count: int, places: int) -> Any:
    """Boxes around a few places, so that most overlap others."""
    middles = g.uniform(0, 400, (batches, places, 2))[:, g.integers(0, places, count)]
    middles += g.uniform(-6, 6, middles.shape)
    half = g.uniform(5, 20, (batches, count, 2))
    return np.concatenate([middles - half, middles + half], -1).astype(np.float32)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("shape", "most", "places", "least"),
    [
        ((1, 1, 700), 10, 500, None),  # the best few suffice
        ((2, 3, 500), 20, 4, None),  # they do not: there are fewer clusters than boxes wanted
        ((1, 2, 600), 300, 200, 0.5),
        ((1, 1, 400), 5, 3, 0.9),
        ((1, 2, 450), 40, 100, 2.0),  # no score is that high
        ((0, 2, 300), 40, 100, None),
        ((1, 1, 300), -1, 10, None),
        ((1, 2, 1200), 1 << 40, 12, None),  # as many as there are
        ((2, 2, 1300), 1 << 40, 150, 0.6),  # those that may be chosen are cut off first
        ((1, 1, 1100), 1 << 40, 20, 2.0),
    ],
)
def test_many_boxes(shape: tuple[int, int, int], most: int, places: int, least: float | None, known: bool) -> None:
    """Scores have ties and NaN among them; the number that is wanted is a constant or not."""
    batches, _, count = shape
    g = np.random.default_rng([*shape, known])
    boxes = clusters(g, batches, count, places)
    scores = (g.integers(0, 50, shape) / 50).astype(np.float32)
    scores[g.random(shape) < 0.02] = np.nan
    operands = ["boxes", "scores", "most", "overlap", *([] if least is None else ["least"])]
    inputs: dict[str, Any] = {"boxes": (F, ("b", count, 4)), "scores": (F, ("b", "c", count))}
    held = {"most": np.array([most]), "overlap": np.array([0.4], np.float32), "least": np.array([least], np.float32)}
    held = {name: held[name] for name in operands[2:]}
    if not known:
        inputs |= {name: (value.dtype, (1,)) for name, value in held.items()}
    made = model([helper.make_node("NonMaxSuppression", operands, ["y"])], inputs, ["y"], held if known else {})
    executable = tilework.compile(made)
    (found,) = executable(boxes, scores, **({} if known else held))
    wanted = suppressed(boxes, scores, most, 0.4, least, 0)
    np.testing.assert_array_equal(found, np.array(wanted, np.int64).reshape(-1, 3))
