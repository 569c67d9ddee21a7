"""A bounded count is reported at half of its limit, and there is no room for marks beyond the limit."""

from edge.store import dedupe
from edge.store.bounds import BoundedCount
from edge.store.client import Store


def test_count_is_full_only_at_its_limit() -> None:
    assert not BoundedCount(1_000_000).is_nearly_full
    assert not BoundedCount(4, 10).is_nearly_full
    assert BoundedCount(5, 10).is_nearly_full
    assert not BoundedCount(9, 10).is_full
    assert BoundedCount(10, 10).is_full


async def test_new_marks_are_refused_at_the_limit(store: Store) -> None:
    await store.commit(dedupe.mark(store.keys, "mes", "1", '"given"', 60_000))
    store.marks = BoundedCount(1000, 1000)
    assert "1000 marks" in dedupe.room_fault(store)
    assert await dedupe.load_answer(store, "mes", "1") == '"given"'
    store.marks = BoundedCount(999, 1000)
    assert dedupe.room_fault(store) == ""
