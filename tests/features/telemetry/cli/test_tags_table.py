"""Samples in tables, reports and lines."""

from edge.features.telemetry.cli.tags import report, sample_line, table
from edge.ports.sample_lines import Quality, Sample

SAMPLE = Sample(0, "t", 1.5, Quality.UNCERTAIN, "P1")


def test_sample_is_shown_with_its_quality_and_process() -> None:
    assert sample_line(SAMPLE).endswith("t  1.5  uncertain  [P1]")
    assert any("uncertain" in text for text in report(SAMPLE))
    assert table([SAMPLE]).row_count == 1
    assert not any(text.startswith("unit") for text in report(SAMPLE))


def test_truth_values_are_spelled_as_in_json_and_rules() -> None:
    """The tables printed `True`."""
    sample = Sample(0, "t", value=True)
    (cell,) = table([sample]).columns[1].cells
    assert str(cell) == "true"
    assert sample_line(sample).endswith("t  true")
    assert [text.split() for text in report(sample) if text.startswith("value")] == [["value", "true"]]
