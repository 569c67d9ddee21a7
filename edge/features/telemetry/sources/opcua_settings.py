"""`[source.<name>]` of the kind `opcua`: variables of an OPC UA server as tags."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta

from edge.config.opcua_equipment import OpcuaEquipmentSettings
from edge.features.telemetry.settings import SourceSettings

_NODE: Final = r"^[^=\s]+\s*=\s*(nsu=[^;]+;[isgb]=.+|ns=\d+;[isgb]=.+|[isgb]=.+|/.+)$"
_NODE_EXPECTED: Final = "TAG = NODE, as in oven.temp = nsu=urn:oven;s=Temperature or oven.temp = /Oven/Temperature"


class OpcuaSourceSettings(SourceSettings, frozen=True, kw_only=True):
    """`[source.<name>]`: samples of variables of an OPC UA server, which is only read."""

    kind: Annotated[Literal["opcua"], Meta(description="Where the samples come from.")]
    url: Annotated[
        str,
        Meta(
            description="The server.",
            extra={"schemes": ("opc.tcp",)},
        ),
    ]
    nodes: Annotated[
        tuple[Annotated[str, Meta(pattern=_NODE, extra={"expected": _NODE_EXPECTED})], ...],
        Meta(
            description="Tags with their variables: a NodeId, best with the URI of its namespace (`nsu=`), or the "
            "names of a path below Objects.",
            min_length=1,
        ),
    ]
    sampling_interval: Annotated[
        float, Meta(ge=0, le=3_600_000, description="Milliseconds; 0 is the fastest that the server has.")
    ] = 1000.0
    deadband: Annotated[
        float,
        Meta(
            ge=0, description="Smaller changes of a number since its last sample are not sampled; 0 takes each change."
        ),
    ] = 0.0
    queue_size: Annotated[
        int, Meta(ge=1, le=10_000, description="Values that the server queues; on overflow it drops the oldest.")
    ] = 10
    security: Annotated[
        Literal["encrypted", "none"],
        Meta(
            description="`encrypted` takes the strongest policy a server offers; `none` is for a network with "
            "trusted devices only."
        ),
    ] = "encrypted"
    cert_file: Annotated[str, Meta(description="Our certificate, for `encrypted`.", extra={"must_be": "file"})] = ""
    key_file: Annotated[str, Meta(description="Private key of our certificate.", extra={"must_be": "file"})] = ""
    trusted: Annotated[
        str, Meta(description="Directory of the certificates of servers that we trust.", extra={"must_be": "directory"})
    ] = ""
    username: Annotated[str, Meta(description="User name; empty logs in as anonymous.")] = ""
    password: Annotated[str, Meta(description="Password of that user.", extra={"secret": True})] = ""
    password_file: Annotated[
        str,
        Meta(
            description="File that holds the password; systemd's credentials are found by their bare name.",
            extra={"must_be": "file"},
        ),
    ] = ""

    @property
    def client(self) -> OpcuaEquipmentSettings:
        """Return the settings of the session."""
        return OpcuaEquipmentSettings(
            kind=self.kind,
            type_ids=(),
            url=self.url,
            security=self.security,
            cert_file=self.cert_file,
            key_file=self.key_file,
            trusted=self.trusted,
            username=self.username,
            password=self.password,
        )

    def conflicts(self, _mqtt_url: str) -> Iterator[str]:
        """Yield missing TLS files, TLS files that are unused without encryption, and tags that occur twice."""
        files = {"cert_file": self.cert_file, "key_file": self.key_file, "trusted": self.trusted}
        if self.security == "encrypted":
            yield from (f"{key}: needed, because security is encrypted" for key, file in files.items() if not file)
        elif any(files.values()):
            yield "security: certificates are given, but none does not use them; expected encrypted"
        tags = [tag for tag, _ in node_list(self.nodes)]
        yield from (
            f"nodes: the tag {tag} occurs twice" for tag in sorted({each for each in tags if tags.count(each) > 1})
        )


def node_list(nodes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the tags with their nodes."""
    split = (each.partition("=") for each in nodes)
    return [(tag.strip(), node.strip()) for tag, _, node in split]
