"""The metrics of an edge node: which tag is which metric of which device, and what was published last."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from edge.features.sparkplug.metric_value import (
    birth_properties,
    data_properties,
    data_type,
    fits,
    quality_of,
    value_of,
)
from edge.features.sparkplug.payload import DataType, Metric
from edge.features.sparkplug.topics import as_id
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinitions

NODE: Final = ""
"""The device of the metrics of the edge node itself."""
MAX_TAGS: Final = 10_000
_OF_NODE: Final = frozenset({"gateway", "equipment"})


class TagMetric(Struct):
    """A metric: its alias is unique in the edge node, its type is that of the last birth certificate."""

    tag: str
    device: str
    name: str
    alias: int
    type: DataType = DataType.DOUBLE
    is_born: bool = False
    sample: Sample | None = None
    published: tuple[Any, int] | None = None


def place_of(tag: str) -> tuple[str, str]:
    """Return device and metric of a tag: `wrench.spindle.temperature` is `spindle/temperature` of `wrench`.

    Tags of the gateway, and those without a dot, are metrics of the edge node itself.
    """
    first, dot, rest = tag.partition(".")
    if not dot or not first or not rest or first in _OF_NODE:
        return NODE, tag.replace(".", "/")
    return as_id(first), rest.replace(".", "/")


class MetricTable:
    """The metrics by their tags, at most 10,000; a tag whose metric name is already in use gets no metric."""

    def __init__(self, definitions: TagDefinitions, most: int = MAX_TAGS) -> None:
        self.mismatched: set[str] = set()
        """Tags whose value has another type than the last birth certificate says."""
        self.unborn: set[str] = set()
        """Devices with a metric that no birth certificate has."""
        self._definitions = definitions
        self._most = most
        self._entries: dict[str, TagMetric | None] = {}
        self._of_device: dict[str, dict[str, TagMetric]] = {NODE: {}}
        self._beyond: set[str] = set()
        """Tags beyond the limit, up to as many again."""

    @property
    def left_out(self) -> int:
        """Return how many tags have no metric."""
        return len(self._beyond) + sum(entry is None for entry in self._entries.values())

    @property
    def devices(self) -> list[str]:
        """Return the devices, in order of their names."""
        return sorted(text for text in self._of_device if text != NODE)

    def announce(self, tags: Iterable[str]) -> None:
        """Add metrics of tags before their first sample."""
        for tag in tags:
            self._entry(tag)

    def learn(self, sample: Sample) -> TagMetric | None:
        """Keep a sample as the last one of its tag unless it is older; return its metric, None when it has none."""
        entry = self._entry(sample.tag)
        if entry is not None and not _is_older(entry, sample):
            entry.sample = sample
            if entry.is_born and not fits(entry.type, sample.value):
                self.mismatched.add(sample.tag)
        return entry

    def birth(self, device: str) -> Iterator[Metric]:
        """Return the metrics of a birth certificate, with their last values; later data has their types."""
        self.unborn.discard(device)
        return map(self._born, sorted(self._of_device[device].values(), key=_last_time))

    def data(self, sample: Sample) -> tuple[str, Metric] | None:
        """Keep a sample; return device and metric when it is born and its value or quality changed."""
        entry = self._entry(sample.tag)
        if entry is not None and _is_older(entry, sample):
            return self.historical(sample)
        entry = self.learn(sample)
        if entry is None or not entry.is_born:
            return None
        known = _content(entry, sample)
        if known == entry.published:
            return None
        entry.published = known
        return entry.device, _metric(entry, sample)

    def historical(self, sample: Sample) -> tuple[str, Metric] | None:
        """Return device and metric of a stored sample; the last one of its tag stays."""
        entry = self._entries.get(sample.tag)
        if entry is None or not entry.is_born:
            return None
        return entry.device, _metric(entry, sample, is_historical=True)

    def _entry(self, tag: str) -> TagMetric | None:
        if tag in self._entries:
            return self._entries[tag]
        if len(self._entries) >= self._most:
            if len(self._beyond) < self._most:
                self._beyond.add(tag)
            return None
        device, name = place_of(tag)
        metrics = self._of_device.setdefault(device, {})
        if name in metrics:
            self._entries[tag] = None
            return None
        self._entries[tag] = metrics[name] = entry = TagMetric(tag, device, name, len(self._entries) + 1)
        self.unborn.add(device)
        return entry

    def _born(self, entry: TagMetric) -> Metric:
        definition = self._definitions.find(entry.tag)
        entry.type, entry.is_born = data_type(definition, entry.sample), True
        self.mismatched.discard(entry.tag)
        quality = quality_of(entry.type, entry.sample)
        value = value_of(entry.type, entry.sample)
        entry.published = None if entry.sample is None else _content(entry, entry.sample)
        properties = birth_properties(definition, quality)
        return Metric(value, entry.name, entry.alias, _last_time(entry), entry.type, properties=properties)


def _last_time(metric: TagMetric) -> int:
    return 0 if metric.sample is None else max(0, metric.sample.at)


def _metric(entry: TagMetric, sample: Sample, *, is_historical: bool = False) -> Metric:
    properties = data_properties(quality_of(entry.type, sample))
    value = value_of(entry.type, sample)
    return Metric(value, None, entry.alias, max(0, sample.at), entry.type, is_historical, properties)


def _content(entry: TagMetric, sample: Sample) -> tuple[Any, int]:
    """Return what makes a metric a changed one; NaN equals NaN."""
    value = value_of(entry.type, sample)
    is_nan = isinstance(value, float) and math.isnan(value)
    return "NaN" if is_nan else value, quality_of(entry.type, sample)


def _is_older(entry: TagMetric, sample: Sample) -> bool:
    """Return whether a sample is older than the last one of its tag."""
    last = entry.sample
    # Without a value it is the mark of a source that was away, by the clock of the gateway.
    return sample.late or (last is not None and None not in {last.value, sample.value} and sample.at < last.at)
