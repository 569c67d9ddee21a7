"""`[sparkplug]`: the station as an edge node of Sparkplug B."""

import re
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import Meta

from edge.config.hosts import broker_conflicts
from edge.config.sections import FeatureSettings, Section, Settings
from edge.foundation.text import Text
from edge.ports.sample_lines import SourceKeys

_Id = Annotated[
    str, Meta(pattern=r"^[^\s/+#]*$", extra={"expected": "a name without blanks or any of / + #"}, max_length=100)
]
_File = Annotated[str, Meta(extra={"must_be": "file"})]
_MAX_FURTHER: Final = 4
_SOURCE_TOPIC: Final = re.compile(r"spBv1\.0/(#|[^/#]+/(#|\+/(#|[^/#]+/#)))$")
"""Topic filters that take births, data and deaths of edge nodes together."""


class SparkplugSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[sparkplug]`: the station as an edge node, and its equipment as devices, for host applications."""

    group: Annotated[_Id, Meta(description="Sparkplug group; empty switches it off.")] = ""
    edge_node: Annotated[
        _Id,
        Meta(description="Id of the edge node, the same in all gateways of a store; empty takes the first scope."),
    ] = ""
    primary_host: Annotated[
        _Id, Meta(description="Id of the host that the edge node waits for before it publishes; empty waits for none.")
    ] = ""
    tags: Annotated[
        tuple[str, ...],
        Meta(description="Names of the tags that are published, `*` for any characters; they are recorded, too."),
    ] = ("*",)
    url: Annotated[
        str,
        Meta(
            description="Its broker; empty takes all keys of `[mqtt]`.",
            extra={"schemes": ("mqtt", "mqtts")},
        ),
    ] = ""
    further_urls: Annotated[
        tuple[str, ...],
        Meta(
            description="Further brokers for the same user and certificates, at most 4: the edge node goes to the next "
            "when its broker, or the primary host there, is gone.",
            extra={"expected": "a list of URLs that begin with mqtt: or mqtts:"},
        ),
    ] = ()
    username: Annotated[str, Meta(description="User name at its own broker; empty logs in without one.")] = ""
    password: Annotated[str, Meta(description="Password of that user.", extra={"secret": True})] = ""
    password_file: Annotated[
        str,
        Meta(
            description="File that holds the password; systemd's credentials are found by their bare name.",
            extra={"expected": "the path of a file"},
        ),
    ] = ""
    ca_file: Annotated[_File, Meta(description="Certificates to trust there; empty trusts the system's.")] = ""
    cert_file: Annotated[_File, Meta(description="Our certificate, if that broker asks for one.")] = ""
    key_file: Annotated[_File, Meta(description="Private key of our certificate.")] = ""

    @property
    def is_on(self) -> bool:
        """Whether the station is an edge node."""
        return bool(self.group)

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield a missing broker, samples that are off, and conflicts of the connection."""
        yield from broker_conflicts(self)
        if not self.group:
            return
        yield from _url_faults(self.further_urls, is_encrypted=self.url.startswith("mqtts:"))
        if self.further_urls and not self.url:
            yield "further_urls: needs url, the first broker"
        if not (self.url or settings.mqtt.url):
            yield "url: needed, because mqtt.url is empty"
        elif not self.url and any((self.username, self.password, self.ca_file, self.cert_file)):
            yield "url: needed, because a user or certificates are given for it"
        if settings.is_off("telemetry"):
            yield "group: telemetry.mode is off, so there are no tags to publish"


SECTIONS = {"sparkplug": Section(SparkplugSettings, after="mirror")}


def source_faults(source: SourceKeys) -> Iterator[str | Text]:
    """Yield what does not suit a source of samples whose payload is Sparkplug B, as `key: fault`."""
    if not _SOURCE_TOPIC.match(source.topic):
        yield "topic: for Sparkplug B all messages of edge nodes, as in spBv1.0/GROUP/+/NODE/#"
    if source.encoding != "auto":
        yield "encoding: leave it out, because Sparkplug B has its own"
    if source.device or source.carrier:
        yield "device: leave it out, and carrier: they are for single values"
    if source.pointer:
        yield "pointer: leave it out, because a metric of Sparkplug B is a value"
    if "{metric}" not in source.tag and "{topic}" not in source.tag:
        yield "tag: needs {metric} or {topic}, because a device of Sparkplug B has many metrics"


def _url_faults(urls: tuple[str, ...], *, is_encrypted: bool) -> Iterator[str | Text]:
    scheme = "mqtts" if is_encrypted else "mqtt"
    if len(urls) > _MAX_FURTHER:
        yield Text.of(
            "further_urls: expected at most {max_further} brokers, got {count}",
            max_further=_MAX_FURTHER,
            count=len(urls),
        )
    for number, url in enumerate(urls, start=1):
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme == scheme and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            # The URL itself may have a password.
            yield Text.of(
                "further_urls: entry {number}: expected a URL as {scheme}://broker:1883, like url",
                number=number,
                scheme=scheme,
            )
