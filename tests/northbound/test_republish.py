"""The republished topics follow from both indexes and from the gap in the change stream."""

import pytest

from edge.northbound.republish import DueTopics, IndexState, RepublishPlan, plan_republish

NOTHING, ALL, CHANGED = DueTopics.NONE, DueTopics.ALL, DueTopics.CHANGED


@pytest.mark.parametrize(
    ("broker", "ours", "has_gap", "topics", "index"),
    [
        pytest.param((7, "9-0"), (7, "9-0"), False, NOTHING, False, id="lost nothing"),
        pytest.param((6, "5-0"), (7, "9-0"), False, CHANGED, True, id="older index"),
        pytest.param((7, "5-0"), (7, "9-0"), False, CHANGED, True, id="changes after the last index"),
        pytest.param((0, "0-0"), (7, "9-0"), False, CHANGED, True, id="lost all, the stream covers it"),
        pytest.param((0, "0-0"), (7, "9-0"), True, ALL, True, id="lost all, the stream is trimmed"),
        pytest.param((6, "5-0"), (7, "9-0"), True, ALL, True, id="older than the stream"),
        pytest.param((8, "9-0"), (7, "9-0"), False, ALL, True, id="index of another store"),
        pytest.param((0, "0-0"), (0, "0-0"), False, NOTHING, False, id="first start"),
    ],
)
def test_only_topics_lost_by_the_broker_are_republished(
    broker: tuple[int, str], ours: tuple[int, str], *, has_gap: bool, topics: DueTopics, index: bool
) -> None:
    plan = plan_republish(IndexState(*broker), IndexState(*ours), has_gap=has_gap)
    assert plan == RepublishPlan(broker[1], topics, index=index)


def test_index_of_another_generation_republishes_all_topics() -> None:
    """A new primary may lack the last changes: a job stands where it stood before."""
    plan = plan_republish(IndexState(7, "9-0", "first"), IndexState(7, "9-0", "second"), has_gap=False)
    assert plan == RepublishPlan("9-0", ALL, index=True)
