"""The keys of a `[southbound.<name>]` that is an OPC UA server; each kind adds its own."""

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from edge.config.sections import EquipmentSettings, FilePath, Password, PasswordFile, Settings
from edge.foundation.text import Text


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

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield missing TLS files, TLS files that are unused without encryption, and files without a directory."""
        if self.files == "on" and not settings.results_folder:
            yield "files: on needs a directory; expected [traces] directory"
        yield from self.tls_conflicts()

    def tls_conflicts(self) -> Iterator[str | Text]:
        """Yield missing TLS files, and TLS files that are unused without encryption."""
        files = {"cert_file": self.cert_file, "key_file": self.key_file, "trusted": self.trusted}
        if self.security == "encrypted":
            yield from (
                Text.of("{key}: needed, because security is encrypted", key=key)
                for key, file in files.items()
                if not file
            )
        elif any(files.values()):
            yield "security: certificates are given, but none does not use them; expected encrypted"
