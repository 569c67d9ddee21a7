"""Samples from MQTT topics: the payload is JSON, MessagePack or text; an empty one is not a value."""

from functools import partial
from typing import Any, Final

import structlog

from edge.app.feature_ports import SampleSink
from edge.equipment.value_payload import ValueDecoder
from edge.features.telemetry.settings import MqttSourceSettings, RedisSourceSettings
from edge.features.telemetry.sources.device_carriers import DeviceCarriers
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.links.mqtt import Message, MqttSession, Settle
from edge.model.payload import UnreadablePayloadError
from edge.ports.sample_lines import Sample

logger = structlog.get_logger(__name__)

MAX_PAYLOAD: Final = 65_536
MISSING: Final = object()
IN_FLIGHT: Final = 200
"""Messages of QoS 1 that wait for their acknowledgement: two batches, so that one is filled while one is stored."""
LARGEST_PACKET: Final = 2 * MAX_PAYLOAD


class SampleSource:
    """Turns the messages of one source into samples."""

    def __init__(
        self,
        name: str,
        settings: MqttSourceSettings,
        sink: SampleSink,
        clock: Clock,
        carriers: DeviceCarriers | None = None,
    ) -> None:
        self._decoder = ValueDecoder(name, settings.encoding)
        self._placement = SamplePlacement(settings, carriers or DeviceCarriers())
        self._name = name
        self._settings = settings
        self._sink = sink
        self._clock = clock
        self._faults = LogThrottle(logger)

    async def open(self, session: MqttSession) -> None:
        """Subscribe to the topics. Raises Unavailable when the broker does not confirm."""
        await session.subscribe(self._settings.topic, self.take)

    async def take(self, message: Message) -> Settle:
        """Queue the sample of a message and return how to wait until it is stored, or was dropped by a full queue.

        A message without a value is logged and dropped.
        """
        await self._sink.pause()
        value, reason = self._value_of(message.topic, message.payload)
        if value is MISSING:
            self._sink.refuse(self._name, 1)
            advice = f"Correct the pointer of [source.{self._name}], or its sender."
            self._faults.warning("sample dropped", message.topic, topic=message.topic, reason=reason, advice=advice)
            if not self._settings.carrier:
                self._sink.doubt(tag_name(self._settings.tag, message.topic))
        elif (sample := self._placement.sample_of(message.topic, value, self._clock())) is not None:
            self._sink.put(sample)
        return partial(self._sink.settle, self._sink.received)

    def _value_of(self, topic: str, payload: bytes) -> tuple[Any, str]:
        """Return the value of a payload; MISSING and the reason where there is none."""
        if len(payload) > MAX_PAYLOAD:
            return MISSING, f"more than {MAX_PAYLOAD} bytes"
        try:
            content = self._decoder.decode(topic, payload) if payload else None
        except UnreadablePayloadError as error:
            return MISSING, str(error)
        return resolve_pointer(content, self._settings.pointer), f"no value at {self._settings.pointer!r}"


class SamplePlacement:
    """Names the samples of a source and adds the carrier of their device; binds devices if the source says so."""

    def __init__(
        self, settings: MqttSourceSettings | RedisSourceSettings, carriers: DeviceCarriers, separator: str = "/"
    ) -> None:
        self._settings = settings
        self._carriers = carriers
        self._separator = separator

    def sample_of(self, topic: str, value: Any, at: int) -> Sample | None:
        """Return the sample of a value; None for one that binds a device to a carrier."""
        settings = self._settings
        if settings.carrier:
            carrier = tag_name(settings.carrier, topic, self._separator)
            if value is None or value == "":
                self._carriers.unbind_carrier(carrier)
            elif isinstance(value, str | int):
                self._carriers.bind(str(value), carrier)
            return None
        device = tag_name(settings.device, topic, self._separator) if settings.device else ""
        carrier_of = self._carriers.of(device) if device else None
        return Sample(at, tag_name(settings.tag, topic, self._separator), value, carrier=carrier_of)


def resolve_pointer(data: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer (RFC 6901); MISSING when there is none."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        match data:
            case dict() if name in data:
                data = data[name]
            case list() if name.isdecimal() and int(name) < len(data):
                data = data[int(name)]
            case _:
                return MISSING
    return data


def tag_name(template: str, topic: str, separator: str = "/") -> str:
    """Return the name of a tag: `{topic}` and `{n}` of its template are replaced; a level that is missing is empty."""
    levels = topic.split(separator)
    name = template.replace("{topic}", ".".join(levels))
    for number in range(1, 10):
        name = name.replace(f"{{{number}}}", levels[number - 1] if number <= len(levels) else "")
    return name
