"""`[fleet]`: this component among the others of the plant, and the signed commands that it executes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from edge.app.feature import FileFolder
from edge.config.sections import FeatureSettings, Section, Settings, Topic
from edge.foundation.text import Text

COMMANDS: Final = (
    "status",
    "doctor",
    "fleet list",
    "jobs list",
    "alarms list",
    "sessions list",
    "audit list",
    "audit verify",
    "locks list",
    "locks delete",
    "maintenance show",
    "maintenance on",
    "maintenance off",
    "sessions end",
    "station diff",
    "station apply",
    "operations list",
    "operations show",
    "operations schedule",
    "operations cancel",
    "opcua renew",
    "record",
    "log-level",
    "support-bundle",
    "upgrade",
    "reload",
    "restart",
)
"""The commands that components execute; edge.features.fleet.allowed_commands has their forms."""


class FleetSettings(FeatureSettings, frozen=True, kw_only=True):
    """`[fleet]`: what names this component in the list of all, and which commands it executes."""

    labels: Annotated[
        Mapping[str, str],
        Meta(
            description="Labels of this component, to list and to address it by.",
            extra={"expected": 'a table of texts, as in { line = "3" }'},
        ),
    ] = msgspec.field(default_factory=dict)
    listen: Annotated[
        Literal["off", "store", "mqtt"],
        Meta(description="Where signed commands come from: the shared store, or the broker of `[mqtt]`."),
    ] = "off"
    allow: Annotated[
        tuple[str, ...],
        Meta(
            description="Commands that it executes, or their first words; as delivered those that only read.",
            extra={"expected": "a list of commands, as in status, doctor, restart"},
        ),
    ] = (
        "status",
        "doctor",
        "fleet list",
        "jobs list",
        "alarms list",
        "sessions list",
        "audit",
        "locks list",
        "maintenance show",
        "station diff",
        "operations list",
        "operations show",
    )
    keys_from: Annotated[
        Literal["folder", "store"],
        Meta(description="Where the public keys of administrators are: in the folder `keys`, or in the store."),
    ] = "folder"
    keys: Annotated[
        str,
        Meta(
            description="Folder of the public keys that it accepts; `edge fleet keys` writes it.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/etc/microdcs-edge/fleet-keys"
    topic_prefix: Annotated[
        Topic, Meta(description="Commands are `{topic_prefix}/fleet/commands/{id}`, results next to them.")
    ] = "app"
    directory: Annotated[
        str,
        Meta(
            description="Folder of the files that commands write, such as a support bundle.",
            extra={"expected": "the path of a directory"},
        ),
    ] = "/var/lib/microdcs-edge/fleet"

    @property
    def is_on(self) -> bool:
        """Whether signed commands are executed."""
        return self.listen != "off"

    @property
    def component_labels(self) -> Mapping[str, str]:
        """The labels of this component."""
        return self.labels

    def conflicts(self, settings: Settings) -> Iterator[str | Text]:
        """Yield unknown commands, and a missing broker."""
        for text in self.allow:
            if not any(is_command(name, text) for name in COMMANDS):
                yield Text.of(
                    "allow: {text!r} is not a command of the fleet; these are {commands}",
                    text=text,
                    commands=", ".join(map(str, COMMANDS)),
                )
        if self.listen == "mqtt" and not settings.mqtt.url:
            yield "listen: mqtt needs a broker; set mqtt.url, or choose store"


SECTIONS = {"fleet": Section(FleetSettings, after="flows")}


def is_command(command: str, allowed: str) -> bool:
    """Return whether an entry of `allow` means a command: by its words, or by the first of them."""
    return command == allowed or command.startswith(f"{allowed} ")


def key_folders(settings: Settings) -> Mapping[str, FileFolder]:
    """Return the folder of the public keys by its name in a backup."""
    keys = Path(settings.section(FleetSettings).keys)
    return {"fleet/keys": FileFolder(keys, "*.jwk", "keys of administrators")}
