"""Metrics of edge nodes as samples: the topics of their messages, data types, quality and instants."""

from typing import Final

from msgspec import Struct

from edge.features.sparkplug.payload import Metric, Value
from edge.features.sparkplug.wire import as_signed
from edge.ports.sample_lines import Quality, Sample

MAX_NAME: Final = 200
"""Characters of the name of a metric or a tag."""
MAX_TOPIC: Final = 600
"""Characters of a topic."""
_KINDS: Final = frozenset({"NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH"})
_SIGNED: Final = {1: 8, 2: 16, 3: 32, 4: 64}
_UNSIGNED: Final = frozenset({5, 6, 7, 8, 13})
_FLOATS: Final = frozenset({9, 10})
_BOOLEAN: Final = 11
_TEXTS: Final = frozenset({12, 14, 15})
_TYPES: Final = frozenset(_SIGNED) | _UNSIGNED | _FLOATS | {_BOOLEAN} | _TEXTS
_NAMES: Final = {16: "data set", 17: "bytes", 18: "file", 19: "template"}
_GOOD: Final = 192
_LATEST_MS: Final = 1 << 53


class NodeName(Struct, frozen=True):
    """An edge node of a group."""

    group: str
    node: str


class SparkplugTopic(Struct, frozen=True):
    """The topic of a message of an edge node, or of a device of it; the device is empty for the edge node."""

    kind: str
    node: NodeName
    device: str = ""


class BornMetric(Struct, frozen=True):
    """A metric that a birth announced: its tag, its data type, and why it cannot be a sample if it cannot."""

    tag: str
    datatype: int
    fault: str | None = None


def parse_topic(topic: str) -> SparkplugTopic | None:
    """Parse the topic of a message of an edge node; None for commands, states of hosts and other topics."""
    match topic.split("/"):
        case ["spBv1.0", group, kind, node] if kind in _KINDS and kind.startswith("N"):
            return SparkplugTopic(kind[1:], NodeName(group, node))
        case ["spBv1.0", group, kind, node, device] if kind in _KINDS and kind.startswith("D") and device:
            return SparkplugTopic(kind[1:], NodeName(group, node), device)
        case _:
            return None


def tag_of(template: str, topic: SparkplugTopic, metric: str) -> str:
    """Return the name of a tag; slashes of the metric become dots, and `{topic}` is all four parts."""
    name = metric.replace("/", ".")
    parts = {"group": topic.node.group, "node": topic.node.node, "device": topic.device, "metric": name}
    found = template.replace("{topic}", ".".join(word for word in parts.values() if word))
    # The metric comes last: what stands in braces in a name is not a placeholder.
    for part, text in parts.items():
        found = found.replace(f"{{{part}}}", text)
    return found


def born_metric(template: str, topic: SparkplugTopic, metric: Metric) -> BornMetric:
    """Return what a metric of a birth announces."""
    if metric.name is None or len(metric.name) > MAX_NAME:
        return BornMetric("", 0, f"a metric has no name, or one of more than {MAX_NAME} characters")
    tag = tag_of(template, topic, metric.name)
    if len(tag) > MAX_NAME:
        return BornMetric("", 0, f"the name of a tag would have more than {MAX_NAME} characters")
    datatype = metric.datatype or 0
    if datatype in _TYPES:
        return BornMetric(tag, datatype)
    what = _NAMES.get(datatype, f"data type {datatype}")
    return BornMetric(tag, datatype, f"{metric.name[:80]!r} is not a number, text or truth value, but {what}")


def sample_of(born: BornMetric, metric: Metric, sent_at: int | None, now: int) -> Sample | str:
    """Return the sample of a metric, or why it is none; a null is a sample of bad quality."""
    if born.fault is not None:
        return born.fault
    if metric.datatype is not None and metric.datatype != born.datatype:
        return f"{born.tag!r} was announced with data type {born.datatype} and came with {metric.datatype}"
    at = metric.timestamp if metric.timestamp is not None else sent_at
    if at is None or at > _LATEST_MS:
        at = now
    if metric.value is None:
        return Sample(at, born.tag, None, Quality.BAD)
    if not _fits(born.datatype, metric.value):
        return f"the value of {born.tag!r} does not have its announced data type {born.datatype}"
    bits = _SIGNED.get(born.datatype)
    value = as_signed(int(metric.value), bits) if bits is not None else metric.value
    return Sample(at, born.tag, value, _quality(metric))


def _fits(datatype: int, value: Value) -> bool:
    match value:
        case bool():
            return datatype == _BOOLEAN
        case int():
            return datatype in _SIGNED or datatype in _UNSIGNED
        case float():
            return datatype in _FLOATS
        case _:
            return datatype in _TEXTS


def _quality(metric: Metric) -> Quality:
    found = metric.properties.get("Quality")
    return Quality.GOOD if found is None or found.value in {None, _GOOD} else Quality.BAD
