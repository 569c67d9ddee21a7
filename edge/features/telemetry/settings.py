"""`[telemetry]` and `[source.<name>]`: rules, and where samples come from."""

import pkgutil
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from edge.app.features import source_payloads
from edge.config.sections import FeatureSettings, Section, Settings, TopicFilter
from edge.foundation.text import Text


class TelemetrySettings(FeatureSettings, frozen=True, kw_only=True):
    """`[telemetry]`: rules, and what is recorded for them."""

    mode: Annotated[
        Literal["on", "off"],
        Meta(
            description="`on` evaluates rules, those of the gateway included; `off` ignores rules, sources and mirrors."
        ),
    ] = "on"
    rules: Annotated[
        str, Meta(description="File with the list of rules, as JSON; empty for none.", extra={"must_be": "file"})
    ] = ""
    tags: Annotated[
        str,
        Meta(
            description="File with definitions of tags, as JSON: unit, type, range, description; empty for none.",
            extra={"must_be": "file"},
        ),
    ] = ""
    record: Annotated[
        Literal["used", "all"],
        Meta(description="`used` records the samples that a rule evaluates; `all` also those of every other tag."),
    ] = "used"
    stream_length: Annotated[
        int, Meta(ge=10, le=100_000, description="Batches of up to 100 samples that the stream keeps.")
    ] = 1_000
    keep: Annotated[
        Literal["auto", "volatile", "durable"],
        Meta(
            description="`volatile` keeps the samples of sources in a second Redis without files; `auto` does so where "
            "the store of the Debian package is on an SD card. Alarms, states of rules and job results are durable."
        ),
    ] = "auto"
    volatile_url: Annotated[
        str,
        Meta(
            description="The Redis without files for `volatile`.",
            extra={"schemes": ("redis", "rediss", "unix")},
        ),
    ] = "unix:///run/redis-microdcs-telemetry/redis.sock"
    flood_alarms: Annotated[
        int,
        Meta(
            ge=2,
            le=10_000,
            description="Number of different alarms within a minute from which on one summary alarm replaces "
            "further ones, until half as many come.",
        ),
    ] = 100
    history_days: Annotated[
        int, Meta(ge=0, le=3_650, description="Days for which recorded samples are kept in files; 0 writes none.")
    ] = 0
    history_bytes: Annotated[
        int,
        Meta(
            ge=1 << 20,
            description="Maximum size of all these files in bytes; beyond it the oldest are removed before their days.",
        ),
    ] = 1 << 30
    history_interval: Annotated[
        int,
        Meta(
            ge=1,
            le=3_600,
            description="Seconds between two writes, earlier with 10,000 samples: what a power cut loses at most.",
        ),
    ] = 300
    history_directory: Annotated[
        str, Meta(description="Directory of these files.", extra={"expected": "the path of a directory"})
    ] = "/var/lib/microdcs-edge/history"

    @property
    def is_on(self) -> bool:
        """Whether rules are evaluated."""
        return self.mode == "on"


_Pointer = Annotated[
    str,
    Meta(
        description="JSON Pointer (RFC 6901) to the value in a payload; empty takes the whole payload.",
        pattern=r"^$|^/",
        extra={"expected": "a JSON Pointer, as in /value"},
    ),
]


class SourceSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[source.<name>]`: a source of samples; each kind adds its own keys."""

    kind: str


class ValueSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """The keys of sources whose messages have one value each."""

    encoding: Annotated[
        Literal["auto", "json", "msgpack", "text"],
        Meta(
            description="How a value is encoded. `auto` is MessagePack, else JSON, else UTF-8 text; a payload that is "
            "a text and MessagePack, as `7` or `д`, is read as the others of its topic are, else as those of the "
            "source are if all are alike, else as MessagePack."
        ),
    ] = "auto"
    device: Annotated[
        str,
        Meta(
            description="Device to which a sample belongs, as `{3}`: the carrier that it is bound to is that of the "
            "sample; empty for none."
        ),
    ] = ""
    carrier: Annotated[
        str,
        Meta(
            description="Makes the messages of this source bindings, not samples: the device in the value is bound to "
            "the carrier that this names, as `{2}`. A value of null or an empty text ends the bindings of the carrier."
        ),
    ] = ""


class MqttSourceSettings(ValueSourceSettings, frozen=True, kw_only=True):
    """`[source.<name>]`: samples from MQTT topics."""

    kind: Annotated[Literal["mqtt"], Meta(description="Where the samples come from.")] = "mqtt"
    topic: Annotated[TopicFilter, Meta(description="Topic filter of the samples.")]
    payload: Annotated[
        str,
        Meta(
            description="`value` is one value in an `encoding`; each other one is read by a feature.",
            extra={"expected": "value, or a payload that a feature reads"},
        ),
    ] = "value"
    pointer: _Pointer = ""
    tag: Annotated[
        str,
        Meta(
            description="Name of the tag; `{topic}` is the topic with dots for slashes, `{1}` its first level. The "
            "payload of a feature has further names.",
            min_length=1,
        ),
    ] = "{topic}"
    url: Annotated[str, Meta(description="Its broker; empty takes `[mqtt]`.", extra={"schemes": ("mqtt", "mqtts")})] = (
        ""
    )

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield a missing broker, a payload that nothing reads, and what does not suit a payload."""
        if not (self.url or settings.mqtt.url):
            yield "url: needed, because mqtt.url is empty"
        if self.payload == "value":
            return
        readers = source_payloads()
        if self.payload in readers:
            yield from pkgutil.resolve_name(readers[self.payload])(self)
        else:
            choices = Text.of("one of {choices}", choices=", ".join(("value", *readers)))
            yield Text.of("payload: expected {expected}, got {given!r}", expected=choices, given=self.payload)


class RedisSourceSettings(ValueSourceSettings, frozen=True, kw_only=True):
    """`[source.<name>]`: samples from the Redis of another system, which is only read."""

    kind: Annotated[Literal["redis"], Meta(description="Where the samples come from.")]
    url: Annotated[
        str,
        Meta(
            description="The Redis of the other system.", extra={"schemes": ("redis", "rediss", "unix"), "secret": True}
        ),
    ]
    patterns: Annotated[
        tuple[str, ...],
        Meta(description="Patterns of channels (PSUBSCRIBE); the newest message of a channel in an interval counts."),
    ] = ()
    keys: Annotated[tuple[str, ...], Meta(description="Keys with texts, read once in an interval.")] = ()
    interval: Annotated[float, Meta(ge=0.05, le=3600, description="Seconds between two samples of a tag.")] = 1.0
    pointer: _Pointer = ""
    tag: Annotated[
        str,
        Meta(
            description="Name of the tag; `{topic}` is the channel or key with dots for colons, `{1}` its first part.",
            min_length=1,
        ),
    ] = "{topic}"

    def conflicts(self, _settings: Settings) -> Iterator[str | Text]:
        """Yield a fault when neither patterns nor keys are set."""
        if not (self.patterns or self.keys):
            yield "patterns: needed, or keys: without them nothing is read"


class MirrorSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[mirror.<name>]`: a set of another system, copied every second."""

    url: Annotated[
        str,
        Meta(
            description="The Redis of the other system.", extra={"schemes": ("redis", "rediss", "unix"), "secret": True}
        ),
    ]
    key: Annotated[
        str, Meta(description="Key of a set, a list, or a list in MessagePack or JSON; it is only read.", min_length=1)
    ]


def discovered_as(settings: Settings) -> tuple[str, ...]:
    """Return the identifiers of alarms and of history, as far as there are any."""
    telemetry = settings.section(TelemetrySettings)
    return ("AC", *(("HD",) if telemetry.history_days else ())) if telemetry.is_on else ()


def mirrors_of(settings: Settings) -> tuple[str, ...]:
    """Return the names of the sets that are mirrored: none while telemetry is off."""
    return tuple(settings.named(MirrorSettings)) if settings.section(TelemetrySettings).mode == "on" else ()


SECTIONS = {
    "telemetry": Section(TelemetrySettings, after="retention"),
    "source": Section(
        MqttSourceSettings,
        after="telemetry",
        is_named=True,
        kinds={
            "mqtt": MqttSourceSettings,
            "redis": RedisSourceSettings,
            "opcua": "edge.features.telemetry.sources.opcua:OpcuaSourceSettings",
        },
    ),
    "mirror": Section(MirrorSettings, after="source", is_named=True),
}
