"""The metrics of the servers of the store: primary, replicas, sentinels."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from edge.store.store_state import StoreState


class StoreGauge(Struct, frozen=True):
    """A gauge: its name without prefix, its meaning, the name of its label or none, and its samples by label value."""

    name: str
    meaning: str
    label: str
    samples: Sequence[tuple[str, float]]


def gauges_of(state: StoreState) -> Iterator[StoreGauge]:
    """Yield the gauges of a state; those of replicas and sentinels behind Sentinel only."""
    nodes = [*((state.primary,) if state.primary else ()), *state.replicas]
    clocks = [(node.address, node.clock_s) for node in nodes if node.clock_s is not None]
    meaning = "What the clock of a data node is ahead of that of the gateway."
    yield StoreGauge("store_clock_difference_seconds", meaning, "node", clocks)
    files = [(node.address, node.has_aof) for node in nodes if node.has_aof is not None]
    yield StoreGauge("store_append_only", "Whether a data node keeps an append-only file: 1 or 0.", "node", files)
    if state.fence is None:
        return
    meaning = "Whether a majority of the sentinels confirms the primary: 1 or 0."
    yield StoreGauge("store_primary_confirmed", meaning, "", [("", not state.fence.reason)])
    if state.primary is not None and state.primary.config_epoch is not None:
        epoch = [(state.primary.address, state.primary.config_epoch)]
        yield StoreGauge("store_config_epoch", "Number of the last failover, by the primary.", "primary", epoch)
    yield StoreGauge("store_sentinels", "Sentinels of the store.", "", [("", len(state.sentinels))])
    yield StoreGauge("store_sentinels_answering", "Sentinels that answer.", "", [("", state.answering)])
    linked = [(replica.address, replica.is_linked) for replica in state.replicas]
    yield StoreGauge("store_replica_connected", "Whether a replica follows the primary: 1 or 0.", "replica", linked)
    lags = [(replica.address, replica.lag_bytes) for replica in state.replicas if replica.lag_bytes is not None]
    yield StoreGauge("store_replica_lag_bytes", "What a replica has not received yet.", "replica", lags)
    seconds = [(replica.address, replica.lag_s) for replica in state.replicas if replica.lag_s is not None]
    meaning = "Time since a replica confirmed what it has received."
    yield StoreGauge("store_replica_lag_seconds", meaning, "replica", seconds)
