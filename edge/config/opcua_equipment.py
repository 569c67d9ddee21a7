"""`[southbound.<name>]` of the kinds `ijt` and `vision`: equipment that is an OPC UA server."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edge.config.sections import EquipmentSettings, FilePath, Password, PasswordFile, Settings


class OpcuaEquipmentSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: one OPC UA server as equipment, and its action types."""

    url: Annotated[str, Meta(description="Its server.", extra={"schemes": ("opc.tcp",)})]
    security: Annotated[
        Literal["encrypted", "none"],
        Meta(
            description="`encrypted` takes the strongest policy a server offers; `none` is for a network with "
            "trusted devices only."
        ),
    ] = "encrypted"
    cert_file: Annotated[FilePath, Meta(description="Our certificate, for `encrypted`.")] = ""
    key_file: Annotated[FilePath, Meta(description="Private key of our certificate.")] = ""
    trusted: Annotated[
        str, Meta(description="Directory of the certificates of servers that we trust.", extra={"must_be": "directory"})
    ] = ""
    username: Annotated[str, Meta(description="User name; empty logs in as anonymous.")] = ""
    password: Annotated[Password, Meta(description="Password of that user.")] = ""
    password_file: PasswordFile = ""
    files: Annotated[
        Literal["off", "on"],
        Meta(
            description="`on` fetches the file of a result, such as an image (ResultTransfer), to `[traces] directory`."
        ),
    ] = "off"
    max_message_bytes: Annotated[
        int,
        Meta(
            ge=1 << 16,
            le=64 << 20,
            description="Maximum size of a message of the server in bytes; a result in a larger one is skipped "
            "with an alarm. In "
            "memory a message takes up to ten times as much.",
        ),
    ] = 4 << 20

    def conflicts(self, settings: Settings) -> Iterator[str]:
        """Yield missing TLS files, TLS files that are unused without encryption, and files without a directory."""
        if self.files == "on" and not settings.traces.directory:
            yield "files: on needs a directory; expected [traces] directory"
        files = {"cert_file": self.cert_file, "key_file": self.key_file, "trusted": self.trusted}
        if self.security == "encrypted":
            yield from (f"{key}: needed, because security is encrypted" for key, file in files.items() if not file)
        elif any(files.values()):
            yield "security: certificates are given, but none does not use them; expected encrypted"


class VisionSettings(OpcuaEquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: a Machine Vision camera."""

    kind: Annotated[Literal["vision"], Meta(description="Protocol: `vision` is OPC 40100-1.")]
    events: Annotated[
        Mapping[Literal["result", "error"], str],
        Meta(
            description="The `type_id` of the event for a result of no command, or a camera that stops with an error.",
            extra={"expected": 'a table of type_ids, as in { result = "com.example.station.inspected.v1" }'},
        ),
    ] = msgspec.field(default_factory=dict)


class IjtSettings(OpcuaEquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: a tightening controller."""

    kind: Annotated[Literal["ijt"], Meta(description="Protocol: `ijt` is OPC 40450-1 and 40451-1.")]
    product_instance_uri: Annotated[
        str, Meta(description="The tool to work with; empty when the controller has only one.")
    ] = ""
    acknowledge: Annotated[
        Literal["own", "none"],
        Meta(
            description="`own` acknowledges the results of our commands once they are stored; `none` leaves that to "
            "another program, which collects the results of the controller."
        ),
    ] = "own"
    correlation: Annotated[
        Literal["command_id", "next"],
        Meta(description="`next` also takes the next result without a command id, of the same process or joint."),
    ] = "command_id"
    lock: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="`on` enables the tool for a command, disables it whenever no command needs it, and does not "
            "enable it while another system has disabled it; `off` only enables it; `auto` is `on` where the "
            "controller reports `Enabled` of the tool."
        ),
    ] = "auto"
    events: Annotated[
        Mapping[Literal["result", "error"], str],
        Meta(
            description="The `type_id` of the event for a joining of the operator's own, or an error of the "
            "controller.",
            extra={"expected": 'a table of type_ids, as in { result = "com.example.station.joined.v1" }'},
        ),
    ] = msgspec.field(default_factory=dict)
