"""What edge nodes of Sparkplug B have announced: their births name data and their types, their deaths end them."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.features.sparkplug.payload import MalformedPayload, Metric, MetricPayload, Value, as_signed, decode_payload
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
    metric_property = metric.properties.get("Quality")
    return Quality.GOOD if metric_property is None or metric_property.value in {None, _GOOD} else Quality.BAD


MAX_PAYLOAD: Final = 131_072
MAX_METRICS: Final = 2_000
"""Metrics of a message: decoding holds up other work."""
_BD_SEQ: Final = "bdSeq"
_CONTROLS: Final = ("Node Control/", "Device Control/")


class Limits(Struct, frozen=True):
    """How much the edge nodes of one source may announce; shortest and longest wait until one is asked again."""

    metrics: int = 10_000
    nodes: int = 256
    ask_ms: int = 1_000
    longest_ask_ms: int = 60_000


class _Asked(Struct, frozen=True):
    """When an edge node was asked for its births, and how long it is not asked again."""

    at: int
    wait_ms: int


class Taken(Struct, frozen=True):
    """What a message is: samples, reasons of what was refused, how many metrics that were, and the node to ask."""

    samples: tuple[Sample, ...] = ()
    faults: tuple[str, ...] = ()
    refused: int = 0
    ask: NodeName | None = None


class _Births:
    """The metrics of an edge node, or of a device, by name and by alias."""

    def __init__(self) -> None:
        self.by_name: dict[str, BornMetric] = {}
        self.by_alias: dict[int, BornMetric] = {}
        self.size = 1

    def find(self, metric: Metric) -> BornMetric | None:
        if metric.name is not None:
            return self.by_name.get(metric.name)
        return None if metric.alias is None else self.by_alias.get(metric.alias)

    def tags(self) -> set[str]:
        """Return the tags of the metrics that can be samples."""
        born_metrics = (*self.by_name.values(), *self.by_alias.values())
        return {metric.tag for metric in born_metrics if metric.fault is None}


class _Node:
    """An edge node with the number of its birth, and its births by device; its own have no device."""

    def __init__(self) -> None:
        self.bd_seq: object = None
        self.births: dict[str, _Births] = {}


class BornNodes:
    """Stores the births of the edge nodes of one source within limits, and converts messages to samples."""

    def __init__(self, template: str, limits: Limits | None = None) -> None:
        self._template = template
        self._limits = limits or Limits()
        self._nodes: dict[NodeName, _Node] = {}
        self._size = 0
        self._asked: dict[NodeName, _Asked] = {}

    @property
    def names(self) -> tuple[NodeName, ...]:
        """Return the edge nodes that have births."""
        return tuple(self._nodes)

    def take(self, topic: str, payload: bytes, now: int) -> Taken:
        """Return what a message is; the births that it ends or begins are noted."""
        place = parse_topic(topic) if len(topic) <= MAX_TOPIC else None
        if place is None:
            return Taken()
        if place.kind == "DEATH" and place.device:
            return Taken(self._end(place.node, place.device, now))
        try:
            message = decode_payload(payload, MAX_PAYLOAD, MAX_METRICS)
        except MalformedPayload as error:
            return Taken(faults=(f"no payload of Sparkplug B: {error}",), refused=1)
        match place.kind:
            case "DEATH":
                return Taken(self._end_node(place.node, message, now))
            case "BIRTH":
                return self._begin(place, message, now)
            case _:
                return self._data(place, message, now)

    def forget(self, now: int) -> tuple[Sample, ...]:
        """Forget all births and return samples of bad quality of their tags: the broker is away."""
        self._asked.clear()
        return tuple(sample for node in self.names for sample in self._end_all(node, now))

    def may_ask(self, node: NodeName, now: int) -> bool:
        """Return whether an edge node may be asked for its births now, and note that it is.

        Each wait is twice the one before, because a question of QoS 0 may be lost; after a loss of the broker and after
        a calm time it is the shortest.
        """
        limits, asked = self._limits, self._asked.get(node)
        wait_ms = limits.ask_ms
        if asked is not None and 0 <= now - asked.at < asked.wait_ms:
            return False
        if asked is not None and self._is_recent(asked, now):
            wait_ms = min(2 * asked.wait_ms, limits.longest_ask_ms)
        if asked is None and len(self._asked) >= limits.nodes:
            self._asked = {node_name: known for node_name, known in self._asked.items() if self._is_recent(known, now)}
            if len(self._asked) >= limits.nodes:
                return False
        self._asked[node] = _Asked(now, wait_ms)
        return True

    def _is_recent(self, asked: _Asked, now: int) -> bool:
        return 0 <= now - asked.at < 2 * self._limits.longest_ask_ms

    def _data(self, place: SparkplugTopic, message: MetricPayload, now: int) -> Taken:
        node = self._nodes.get(place.node)
        births = None if node is None else node.births.get(place.device)
        if births is None:
            reason = "it has data, and its birth did not come"
            return Taken((), (reason,), len(message.metrics), self._ask(place.node, now))
        return self._samples(place, births, message, now)

    def _samples(self, place: SparkplugTopic, births: _Births, message: MetricPayload, now: int) -> Taken:
        samples: list[Sample] = []
        faults: list[str] = []
        is_unborn = False
        for metric in message.metrics:
            if metric.name is not None and _is_control(metric.name):
                continue
            born = births.find(metric)
            if born is None:
                is_unborn |= _may_be_born(metric)
                faults.append(_unborn(metric))
                continue
            sample = sample_of(born, metric, message.timestamp, now)
            if isinstance(sample, str):
                faults.append(sample)
                continue
            samples.append(replace(sample, late=metric.is_historical))
        ask = self._ask(place.node, now) if is_unborn else None
        return Taken(tuple(samples), tuple(dict.fromkeys(faults)), len(faults), ask)

    def _ask(self, node: NodeName, now: int) -> NodeName | None:
        return node if self.may_ask(node, now) else None

    def _begin(self, place: SparkplugTopic, message: MetricPayload, now: int) -> Taken:
        try:
            births = self._read_births(place, message.metrics)
        except MalformedPayload as error:
            return Taken(self._end(place.node, place.device, now), (str(error),), max(1, len(message.metrics)))
        gone: list[Sample] = []
        known = self._nodes.get(place.node)
        if known is not None and not place.device and known.bd_seq != _bd_seq(message):
            # A new connection of the edge node: its devices are gone until they are born again.
            for device in tuple(known.births):
                if device:
                    gone += self._end(place.node, device, now)
        old = self._remove(place.node, place.device)
        lost = set() if old is None else old.tags() - births.tags()
        gone += (Sample(now, tag, None, Quality.BAD) for tag in sorted(lost))
        if fault := self._excess(place.node, births):
            still = () if old is None else old.tags() - lost
            gone += (Sample(now, tag, None, Quality.BAD) for tag in sorted(still))
            return Taken(tuple(gone), (fault,), max(1, len(message.metrics)))
        node = self._nodes.setdefault(place.node, _Node())
        node.births[place.device] = births
        self._size += births.size
        if not place.device:
            node.bd_seq = _bd_seq(message)
        taken = self._samples(place, births, message, now)
        return Taken((*gone, *taken.samples), taken.faults, taken.refused)

    def _excess(self, node: NodeName, births: _Births) -> str | None:
        if self._size + births.size > self._limits.metrics:
            return f"the edge nodes of this source have more than {self._limits.metrics} metrics"
        if node not in self._nodes and len(self._nodes) >= self._limits.nodes:
            return f"this source has more than {self._limits.nodes} edge nodes"
        return None

    def _read_births(self, place: SparkplugTopic, metrics: Iterable[Metric]) -> _Births:
        births = _Births()
        for metric in metrics:
            if metric.name is not None and _is_control(metric.name):
                continue
            born = born_metric(self._template, place, metric)
            if metric.name is not None and len(metric.name) <= MAX_NAME:
                births.by_name[metric.name] = born
            if metric.alias is not None:
                if metric.alias in births.by_alias:
                    raise MalformedPayload(f"its birth has the alias {metric.alias} twice")
                births.by_alias[metric.alias] = born
            births.size += 1
        return births

    def _end_node(self, name: NodeName, message: MetricPayload, now: int) -> tuple[Sample, ...]:
        node = self._nodes.get(name)
        number = _bd_seq(message)
        if node is not None and None not in {number, node.bd_seq} and number != node.bd_seq:
            # The will of an earlier connection.
            return ()
        return self._end_all(name, now)

    def _end_all(self, name: NodeName, now: int) -> tuple[Sample, ...]:
        node = self._nodes.get(name)
        devices = () if node is None else tuple(node.births)
        samples = tuple(sample for device in devices for sample in self._end(name, device, now))
        self._nodes.pop(name, None)
        return samples

    def _end(self, name: NodeName, device: str, now: int) -> tuple[Sample, ...]:
        births = self._remove(name, device)
        return () if births is None else tuple(Sample(now, tag, None, Quality.BAD) for tag in sorted(births.tags()))

    def _remove(self, name: NodeName, device: str) -> _Births | None:
        node = self._nodes.get(name)
        births = None if node is None else node.births.pop(device, None)
        self._size -= 0 if births is None else births.size
        if node is not None and not node.births:
            del self._nodes[name]
        return births


def _is_control(name: str) -> bool:
    return name == _BD_SEQ or name.startswith(_CONTROLS)


def _bd_seq(message: MetricPayload) -> object:
    return next((metric.value for metric in message.metrics if metric.name == _BD_SEQ), None)


def _may_be_born(metric: Metric) -> bool:
    """Return whether a birth can announce a metric: endless names are not asked for."""
    return metric.alias is not None if metric.name is None else len(metric.name) <= MAX_NAME


def _unborn(metric: Metric) -> str:
    if not _may_be_born(metric):
        return f"a metric has neither name nor alias, or a name of more than {MAX_NAME} characters"
    called = f"alias {metric.alias}" if metric.name is None else f"metric {metric.name[:80]!r}"
    return f"no birth names the {called}"
