"""The last samples of a bounded number of tags are saved every few seconds."""

from edge.features.telemetry.latest_tags import MAX_TAGS, SAVE_EVERY_MS, LatestTags
from edge.ports.batch import doubtful
from edge.ports.sample_lines import Occurrence, Quality, Sample, parse_line
from edge.store import last_tags as tags
from edge.store.client import Store


async def test_tags_are_saved_once_per_interval(store: Store) -> None:
    latest = LatestTags(store)
    latest.note(Sample(1, "a", 1))
    await latest.save_if_due(SAVE_EVERY_MS)
    latest.note(Sample(2, "a", 2))
    await latest.save_if_due(SAVE_EVERY_MS + 1)
    assert await tags.load(store) == {"a": '{"at":1,"tag":"a","value":1}'}
    await latest.save_if_due(2 * SAVE_EVERY_MS)
    assert await tags.load(store) == {"a": '{"at":2,"tag":"a","value":2}'}


def test_tags_beyond_the_limit_and_occurrences_are_not_kept(store: Store) -> None:
    latest = LatestTags(store)
    for number in range(MAX_TAGS + 1):
        latest.note(Sample(1, f"t{number}", number))
    latest.note(Occurrence(1, "x", None, None))
    latest.note(Sample(2, "t0", "new"))
    assert (latest.value_of("t0"), latest.value_of(f"t{MAX_TAGS}"), latest.value_of("x")) == ("new", None, None)


async def test_refused_sample_leaves_the_last_value_as_uncertain(store: Store) -> None:
    latest = LatestTags(store)
    latest.note(Sample(1, "t", 5))
    latest.note(doubtful("t", 2))
    await latest.save_if_due(10_000)
    line = parse_line(await tags.load_one(store, "t") or "")
    assert line == Sample(1, "t", 5, Quality.UNCERTAIN)
