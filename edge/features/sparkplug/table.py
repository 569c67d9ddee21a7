"""The metrics of an edge node: which tag is which metric of which device, and what was published last."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from edge.features.sparkplug.payload import DataType, Metric, MetricProperty, Value
from edge.model.engineering_unit import UNITS
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinition, TagDefinitions

NAMESPACE: Final = "spBv1.0"
_RESERVED: Final = frozenset("/+#")
_LONGEST_ID: Final = 255


class NodeTopics(Struct, frozen=True):
    """The topics of the edge node `node` of a group."""

    group: str
    node: str

    def of_node(self, kind: str) -> str:
        """Return the topic of a message of the edge node, as NBIRTH."""
        return f"{NAMESPACE}/{self.group}/{kind}/{self.node}"

    def of_device(self, kind: str, device: str) -> str:
        """Return the topic of a message of a device, as DDATA."""
        return f"{NAMESPACE}/{self.group}/{kind}/{self.node}/{device}"


def state_topic(host: str) -> str:
    """Return the topic of the state of a host application."""
    return f"{NAMESPACE}/STATE/{host}"


def as_id(name: str) -> str:
    """Return a name as identifier of a device, shortened; characters that topics reserve or forbid are replaced."""
    return "".join(text if text.isprintable() and text not in _RESERVED else "_" for text in name[:_LONGEST_ID])


_EXACT: Final = 1 << 53
"""Integers up to here are exact as a double."""
_INT64: Final = 1 << 63
_OF_TAG: Final = {"number": DataType.DOUBLE, "text": DataType.STRING, "truth value": DataType.BOOLEAN}
GOOD: Final = 192
STALE: Final = 500
_BAD: Final = 0
_QUALITY: Final = {Quality.GOOD: GOOD, Quality.UNCERTAIN: GOOD, Quality.BAD: _BAD}
"""Sparkplug has no uncertain quality; the rules of the gateway take it as good, too."""
_SYMBOLS: Final = {
    eu_information.unit_id: eu_information.display_name.text
    for eu_information in UNITS.values()
    if eu_information.display_name
}


def data_type(definition: TagDefinition | None, sample: Sample | None) -> DataType:
    """Return the data type of a tag: that of its definition, else that of its value.

    A number is a double, so that 5 and 5.5 have one type; a larger integer than a double holds is an integer.
    """
    if definition is not None and definition.type is not None:
        return _OF_TAG[definition.type]
    match None if sample is None else sample.value:
        case bool():
            return DataType.BOOLEAN
        case str():
            return DataType.STRING
        case int(number) if number >= _INT64:
            return DataType.UINT64
        case int(number) if abs(number) > _EXACT:
            return DataType.INT64
        case _:
            return DataType.DOUBLE


def fits(type: DataType, value: Any) -> bool:
    """Return whether a value has a data type; None has each."""
    match value:
        case None:
            return True
        case bool():
            return type is DataType.BOOLEAN
        case str():
            return type is DataType.STRING
        case int():
            exact = (type is DataType.INT64 and value < _INT64) or (type is DataType.UINT64 and value >= 0)
            return exact or (type is DataType.DOUBLE and abs(value) <= _EXACT)
        case float():
            return type is DataType.DOUBLE
        case _:
            return False


def value_of(type: DataType, sample: Sample | None) -> Value:
    """Return the value to send; None for one of another data type."""
    if sample is None or not fits(type, sample.value):
        return None
    value: Value = sample.value
    return value


def quality_of(type: DataType, sample: Sample | None) -> int:
    """Return the quality code: stale without a sample, bad for a value of another data type."""
    if sample is None:
        return STALE
    return _QUALITY[sample.quality] if fits(type, sample.value) else _BAD


def birth_properties(definition: TagDefinition | None, quality: int) -> Mapping[str, MetricProperty]:
    """Return the properties of a metric in a birth certificate."""
    metric_properties = {"Quality": MetricProperty(DataType.INT32, quality)}
    if definition is None:
        return metric_properties
    if definition.unit:
        metric_properties["engUnit"] = MetricProperty(DataType.STRING, _symbol(definition.unit))
    if definition.low is not None:
        metric_properties["engLow"] = MetricProperty(DataType.DOUBLE, definition.low)
    if definition.high is not None:
        metric_properties["engHigh"] = MetricProperty(DataType.DOUBLE, definition.high)
    if definition.description:
        metric_properties["documentation"] = MetricProperty(DataType.STRING, definition.description)
    return metric_properties


def data_properties(quality: int) -> Mapping[str, MetricProperty]:
    """Return the properties of a metric with data: its quality unless it is good, which is the default."""
    return {} if quality == GOOD else {"Quality": MetricProperty(DataType.INT32, quality)}


def _symbol(code: str) -> str:
    """Return the symbol of a unit; its code when it has none."""
    return _SYMBOLS.get(int.from_bytes(code.encode())) or code


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
