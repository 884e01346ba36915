"""The small models can be fetched, and the inputs they are given make sense to ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from benchmarks.harness import models


@pytest.mark.parametrize("name", models.SMALL)
def test_a_small_model_runs_on_its_inputs(name: str) -> None:
    session: Any = onnxruntime.InferenceSession(models.fetch(name).path, providers=["CPUExecutionProvider"])
    feeds = models.inputs(name)
    assert {value.name for value in session.get_inputs()} == set(feeds)
    outputs = session.run(None, feeds)
    assert outputs
    for output in outputs:
        assert output.size > 0
        assert np.isfinite(output).all()
