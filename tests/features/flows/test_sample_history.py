"""A trial reads tags from the samples passed to it."""

import math

from edge.features.flows.nodes.read import LatestValue, SampleWindow
from edge.features.flows.sample_history import SampleHistory
from edge.ports.sample_lines import Quality, Sample

HISTORY = SampleHistory.of(
    [
        Sample(1000, "t", 1),
        Sample(2000, "t", 2, Quality.UNCERTAIN),
        Sample(2000, "other", 9),
        Sample(3000, "t", 3, Quality.BAD),
        Sample(3000, "t", math.nan),
        Sample(4000, "t", 4),
    ]
)


def test_latest_value_is_not_bad_and_not_later() -> None:
    assert [HISTORY.answer(LatestValue("t", until)) for until in (999, 1000, 3500, 4000, 9000)] == [None, 1, 2, 4, 4]
    assert HISTORY.answer(LatestValue("missing", 9000)) is None


def test_window_excludes_its_beginning_and_includes_its_end() -> None:
    assert HISTORY.answer(SampleWindow("t", 1000, 4000, with_time=False)) == [2, 4]
    assert HISTORY.answer(SampleWindow("t", 4000, 9000, with_time=False)) == []


def test_samples_carry_time_and_quality() -> None:
    assert HISTORY.answer(SampleWindow("t", 0, 2000, with_time=True)) == [
        {"at": 1000, "value": 1, "quality": "good"},
        {"at": 2000, "value": 2, "quality": "uncertain"},
    ]
