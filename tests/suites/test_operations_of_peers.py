"""The operations that benchmarks run, in the engines that they are compared with."""

from __future__ import annotations

import pytest

from benchmarks.operations import engines
from benchmarks.operations.operation import Operation
from tests.benchmarks.test_operations import SMALL, drawn


@pytest.mark.parametrize("chosen", SMALL, ids=lambda each: f"{each.kind}-{each.label}")
def test_peers_compute_what_the_reference_does(chosen: Operation) -> None:
    assert engines.onnxruntime_engine(chosen.described(), 1, 5).facts["of bound"] <= 1
    if chosen.numpy(drawn(chosen)) is not None:
        assert engines.numpy_engine(chosen.described(), 1, 5).facts["of bound"] <= 1
    else:
        with pytest.raises(ValueError, match="numpy has no"):
            engines.numpy_engine(chosen.described(), 1, 5)
