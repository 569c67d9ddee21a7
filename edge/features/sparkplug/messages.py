"""The messages of an edge node in their order: births, data and deaths with their sequence numbers."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from msgspec import Struct

from edge.features.sparkplug.payload import DataType, Metric, MetricPayload, encode_parts, encode_payload
from edge.features.sparkplug.table import NODE, MetricTable, NodeTopics
from edge.links.cloudevent_mqtt import Message
from edge.ports.sample_lines import Sample

REBIRTH: Final = "Node Control/Rebirth"
BD_SEQ: Final = "bdSeq"
_NUMBERS: Final = 256
"""Sequence numbers and birth numbers run from 0 to 255."""


class DraftMessage(Struct, frozen=True):
    """A message whose payload is encoded part by part."""

    topic: str
    parts: Iterable[bytes]


def next_number(number: int) -> int:
    """Return the sequence number, or the number of a birth, after another one."""
    return (number + 1) % _NUMBERS


def node_death(topics: NodeTopics, bd_seq: int, now: int) -> Message:
    """Return the death certificate of an edge node, which is also the will of its connection."""
    metric = Metric(bd_seq, BD_SEQ, timestamp=now, datatype=DataType.INT64)
    return Message(topics.of_node("NDEATH"), encode_payload(MetricPayload(now, (metric,))))


class NodeMessages:
    """Makes the messages of one connection; each has the sequence number after that of the one before."""

    def __init__(self, topics: NodeTopics, table: MetricTable, bd_seq: int) -> None:
        self.alive: set[str] = set()
        """Devices with a birth certificate and no death certificate after it."""
        self._topics = topics
        self._table = table
        self._bd_seq = bd_seq
        self._seq = _NUMBERS - 1

    def births(self, gone: Iterable[str], now: int) -> Iterator[DraftMessage]:
        """Yield the birth certificates of the edge node and of its devices, except those that are gone."""
        self._seq = _NUMBERS - 1
        own = (
            Metric(self._bd_seq, BD_SEQ, timestamp=now, datatype=DataType.INT64),
            # The command to send the births again is called by its name: it has no alias.
            Metric(value=False, name=REBIRTH, timestamp=now, datatype=DataType.BOOLEAN),
        )
        yield self._message("NBIRTH", NODE, chain(own, self._table.birth(NODE)), now)
        self.alive.clear()
        for device in self._table.devices:
            if device not in set(gone):
                yield self.device_birth(device, now)

    def device_birth(self, device: str, now: int) -> DraftMessage:
        """Return the birth certificate of a device."""
        self.alive.add(device)
        return self._message("DBIRTH", device, self._table.birth(device), now)

    def device_death(self, device: str, now: int) -> DraftMessage:
        """Return the death certificate of a device."""
        self.alive.discard(device)
        return self._message("DDEATH", device, (), now)

    def data(self, samples: Iterable[Sample], now: int) -> Iterator[DraftMessage]:
        """Yield the messages with the metrics that changed, one for each device; their times are in order."""
        return self._grouped(sorted(samples, key=lambda sample: sample.at), self._table.data, now)

    def historical(self, samples: Iterable[Sample], now: int) -> Iterator[DraftMessage]:
        """Yield the messages with stored samples, in the order in which they were stored."""
        return self._grouped(samples, self._table.historical, now)

    def death(self, now: int) -> Message:
        """Return the death certificate of the edge node."""
        return node_death(self._topics, self._bd_seq, now)

    def _grouped(
        self, samples: Iterable[Sample], metric_of: Callable[[Sample], tuple[str, Metric] | None], now: int
    ) -> Iterator[DraftMessage]:
        groups: dict[str, list[Metric]] = {}
        for sample in samples:
            found = metric_of(sample)
            if found is not None and (found[0] == NODE or found[0] in self.alive):
                groups.setdefault(found[0], []).append(found[1])
        for device, metrics in groups.items():
            yield self._message("NDATA" if device == NODE else "DDATA", device, metrics, now)

    def _message(self, kind: str, device: str, metrics: Iterable[Metric], now: int) -> DraftMessage:
        self._seq = next_number(self._seq)
        topic = self._topics.of_node(kind) if device == NODE else self._topics.of_device(kind, device)
        return DraftMessage(topic, encode_parts(now, metrics, self._seq))
