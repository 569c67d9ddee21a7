"""A sample that is older than one of its tag is late, unless the clock of the gateway was set back."""

from edge.features.telemetry.late_samples import NewestSamples
from edge.ports.batch import at_arrival, encode_line
from edge.ports.sample_lines import Quality, Sample, parse_line


def test_older_sample_of_a_tag_is_late_and_an_equal_one_is_not() -> None:
    newest = NewestSamples()
    samples = [
        Sample(5, "a", 1),
        Sample(4, "b", 1),
        Sample(4, "a", 2),
        Sample(5, "a", 3),
        Sample(5, "a", 4, gateway="g"),
    ]
    assert [newest.is_late(each, 5) for each in samples] == [False, False, True, False, False]


def test_sample_after_a_clock_that_was_set_back_is_not_late() -> None:
    newest = NewestSamples()
    assert not newest.is_late(Sample(3_600_000, "a", 1), 3_600_000)
    assert not newest.is_late(Sample(5, "a", 1), 5)
    assert newest.is_late(Sample(4, "a", 1), 5)


def test_samples_of_a_decision_that_is_made_again_are_not_late() -> None:
    newest = NewestSamples()
    assert not newest.is_late(Sample(5, "a", 1), 9)
    newest.commit()
    assert not newest.is_late(Sample(9, "a", 1), 9)
    newest.rollback()
    assert not newest.is_late(Sample(8, "a", 1), 9)
    assert newest.is_late(Sample(4, "a", 1), 9)


def test_first_value_of_a_source_that_was_away_is_not_late() -> None:
    """Its source time is that of the last change, before the mark that the source is away."""
    newest = NewestSamples()
    assert not newest.is_late(Sample(5, "a", 1), 5)
    assert not newest.is_late(Sample(20, "a", None, Quality.BAD), 20)
    assert not newest.is_late(Sample(4, "a", 1), 30)
    assert newest.is_late(Sample(3, "a", 1), 30)


def test_sample_that_its_source_had_stored_is_late_whatever_its_age() -> None:
    """One of ten minutes ago counted at its arrival: it raised an alarm, and was the last value."""
    stored = Sample(1_000, "a", 60, late=True)
    line = parse_line(encode_line(at_arrival(stored, 601_000)))
    assert line == stored
    newest = NewestSamples()
    assert newest.is_late(stored, 601_000)
    assert not newest.is_late(Sample(500, "a", 2), 601_000)
    assert at_arrival(Sample(602_001, "a", 60, late=True), 601_000).at == 601_000
