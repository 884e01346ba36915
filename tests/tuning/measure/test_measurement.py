"""What is made of samples."""

from __future__ import annotations

import pytest

from tilework.errors import UsageError
from tilework.tuning.measure.measurement import ENOUGH, Kernel, Measurement


def test_disturbed_rounds_are_left_out_while_there_are_others() -> None:
    """Twice as many disturbed rounds, in which the other side was the one to suffer, change nothing."""
    count = 3 * ENOUGH
    disturbed = tuple(i % 3 != 0 for i in range(count))
    seconds = tuple(1.0 if not bad else 1.5 for bad in disturbed)
    against = tuple(2.0 if not bad else 9.0 for bad in disturbed)
    found = Measurement("measured", seconds, against, disturbed=disturbed)
    assert (found.median, found.ratio.middle, found.ratio.count) == (1.0, 0.5, ENOUGH)
    few = Measurement("measured", seconds[:30], against[:30], disturbed=disturbed[:30])
    assert few.median == 1.5
    assert few.ratio.count == 30
    assert len(found.seconds) == count  # raw samples stay


def test_text() -> None:
    found = Measurement("measured", (2e-6,) * 7, (4e-6,) * 7, kernel=Kernel(0.01, 100, 5))
    assert str(found) == "2 us a call (2 us to 2 us, 7 samples), 0.5000 (0.5000 to 0.5000) of the other's time"
    assert str(Measurement("measured", (0.25,))) == "250 ms a call"
    refused = Measurement("refused", reason="no loop 'x'", code=1501, side="against")
    assert str(refused) == "refused (what it was measured against) [TW1501]: no loop 'x'"
    assert not refused.ok
    for fact in ("median", "interval", "ratio"):
        with pytest.raises(UsageError, match="TW1760"):
            getattr(refused, fact)
