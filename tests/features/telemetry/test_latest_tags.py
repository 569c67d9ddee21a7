"""The last samples of a bounded number of tags are saved every few seconds."""

from edge.features.telemetry.latest_tags import MAX_TAGS, SAVE_EVERY_MS, LatestTags, NewestSamples
from edge.ports.batch import at_arrival, doubtful, encode_line
from edge.ports.sample_lines import Occurrence, Quality, Sample, parse_line
from edge.store import stream_of_samples as tags
from edge.store.client import Store


async def test_tags_are_saved_once_per_interval(store: Store) -> None:
    latest = LatestTags()
    latest.note(Sample(1, "a", 1))
    await latest.save_if_due(store, SAVE_EVERY_MS)
    latest.note(Sample(2, "a", 2))
    await latest.save_if_due(store, SAVE_EVERY_MS + 1)
    assert await tags.load_last(store) == {"a": '{"at":1,"tag":"a","value":1}'}
    await latest.save_if_due(store, 2 * SAVE_EVERY_MS)
    assert await tags.load_last(store) == {"a": '{"at":2,"tag":"a","value":2}'}


def test_tags_beyond_the_limit_and_occurrences_are_not_kept() -> None:
    latest = LatestTags()
    for number in range(MAX_TAGS + 1):
        latest.note(Sample(1, f"t{number}", number))
    latest.note(Occurrence(1, "x", None, None))
    latest.note(Sample(2, "t0", "new"))
    assert (latest.value_of("t0"), latest.value_of(f"t{MAX_TAGS}"), latest.value_of("x")) == ("new", None, None)


async def test_refused_sample_leaves_the_last_value_as_uncertain(store: Store) -> None:
    latest = LatestTags()
    latest.note(Sample(1, "t", 5))
    latest.note(doubtful("t", 2))
    await latest.save_if_due(store, 10_000)
    line = parse_line(await tags.load_last_of(store, "t") or "")
    assert line == Sample(1, "t", 5, Quality.UNCERTAIN)


def test_older_sample_of_a_tag_is_late_and_an_equal_one_is_not() -> None:
    newest = NewestSamples()
    samples = [
        Sample(5, "a", 1),
        Sample(4, "b", 1),
        Sample(4, "a", 2),
        Sample(5, "a", 3),
        Sample(5, "a", 4, gateway="g"),
    ]
    assert [newest.is_late(sample, 5) for sample in samples] == [False, False, True, False, False]


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
    sample = Sample(1_000, "a", 60, late=True)
    line = parse_line(encode_line(at_arrival(sample, 601_000)))
    assert line == sample
    newest = NewestSamples()
    assert newest.is_late(sample, 601_000)
    assert not newest.is_late(Sample(500, "a", 2), 601_000)
    assert at_arrival(Sample(602_001, "a", 60, late=True), 601_000).at == 601_000
