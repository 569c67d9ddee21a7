"""The servers of the store as metrics: those of a line, and those of a single server."""

from edge.app.metrics import server_metrics
from edge.store.store_state import FenceState, NodeReport, state_of
from tests.store.test_store_state import FIRST, SECOND, THIRD, line, replica_node


def test_metrics_of_a_line_name_replicas_sentinels_and_fence() -> None:
    state = line({THIRD: replica_node(THIRD, is_linked=False, clock_s=1.5)}, fence=FenceState(0.0, "silent"))
    found = {
        metric.name: {"".join(labels): value for labels, value in metric.samples} for metric in server_metrics(state)
    }
    assert found["store_primary_confirmed"] == {"": 0}
    assert found["store_config_epoch"] == {FIRST: 4}
    assert (found["store_sentinels"], found["store_sentinels_answering"]) == ({"": 3}, {"": 3})
    assert found["store_replica_connected"] == {SECOND: 1, THIRD: 0}
    assert found["store_replica_lag_bytes"] == {SECOND: 0, THIRD: 0}
    assert found["store_replica_lag_seconds"] == {SECOND: 1, THIRD: 0}
    assert found["store_clock_difference_seconds"] == {FIRST: 0, SECOND: 0, THIRD: 1.5}
    assert found["store_append_only"] == {FIRST: 1, SECOND: 1, THIRD: 1}


def test_single_server_has_no_metrics_of_sentinel() -> None:
    server = NodeReport(address=FIRST, role="master", has_aof=True)
    found = [metric.name for metric in server_metrics(state_of((), {FIRST: server}, durability="any"))]
    assert found == ["store_clock_difference_seconds", "store_append_only"]
