"""Samples in tables, reports and lines."""

from edge.features.telemetry.cli.tags import report, sample_line, table
from edge.ports.sample_lines import Quality, Sample

SAMPLE = Sample(0, "t", 1.5, Quality.UNCERTAIN, "P1")


def test_sample_is_shown_with_its_quality_and_process() -> None:
    assert sample_line(SAMPLE).endswith("t  1.5  uncertain  [P1]")
    assert any("uncertain" in text for text in report(SAMPLE))
    assert table([SAMPLE]).row_count == 1
    assert not any(text.startswith("unit") for text in report(SAMPLE))
