"""A bounded count is reported at half of its limit, and there is no room for marks beyond the limit."""

from edge.store import dedupe
from edge.store.bounds import BoundedCount, MarksBySender
from edge.store.client import Store
from edge.store.dedupe import caller, equipment_sender


def test_count_is_full_only_at_its_limit() -> None:
    assert not BoundedCount(1_000_000).is_nearly_full
    assert not BoundedCount(4, 10).is_nearly_full
    assert BoundedCount(5, 10).is_nearly_full
    assert not BoundedCount(9, 10).is_full
    assert BoundedCount(10, 10).is_full


MES, WRENCH, CAMERA = caller("/mes"), equipment_sender("wrench"), equipment_sender("camera")


async def test_new_marks_are_refused_at_the_limit(store: Store) -> None:
    await store.commit(dedupe.mark(store.keys, "mes", "1", '"given"', 60_000))
    store.marks = BoundedCount(1000, 1000)
    assert "1000 marks" in dedupe.room_fault(store, MES)
    assert "1000 marks" in dedupe.room_fault(store, WRENCH)
    assert await dedupe.load_answer(store, "mes", "1") == '"given"'
    store.marks = BoundedCount(999, 1000)
    assert dedupe.room_fault(store, MES) == ""


def test_sender_beyond_its_share_is_refused_alone(store: Store) -> None:
    store.marks_by_sender = MarksBySender({WRENCH.id: BoundedCount(250, 250)}, BoundedCount(250, 500))
    assert "250 marks of events of wrench" in dedupe.room_fault(store, WRENCH)
    assert "edge marks drop events:wrench" in dedupe.room_fault(store, WRENCH)
    assert dedupe.room_fault(store, CAMERA) == dedupe.room_fault(store, MES) == ""


def test_events_of_all_equipment_leave_half_of_the_marks_to_calls(store: Store) -> None:
    store.marks_by_sender = MarksBySender(events=BoundedCount(500, 500))
    assert "500 marks of events of equipment" in dedupe.room_fault(store, WRENCH)
    assert dedupe.room_fault(store, MES) == ""
