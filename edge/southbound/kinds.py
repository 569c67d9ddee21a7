"""The kinds of equipment, one line each: where its settings and what opens it are.

Both stand in the file of the kind, unless that imports the library of a protocol: every command reads the settings, and
those that look into the store only should not wait half a second for asyncua. Such settings stand in `edge.config`.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EquipmentKind:
    """Where a kind is found, as `module:name`; it is imported once the settings name it.

    `settings` is the type of its section, `opener` the function that opens it: `opener(name, settings, station,
    scopes)` gives an asynchronous context manager with the `Equipment`. That of MQTT is given a session as well, at a
    broker that it may share with the MES.
    """

    settings: str
    opener: str


KINDS: Mapping[str, EquipmentKind] = {
    "mqtt": EquipmentKind("edge.config:MqttEquipmentSettings", "edge.southbound.mqtt:open_equipment"),
    "stacklight": EquipmentKind(
        "edge.southbound.stacklight:StackLightSettings", "edge.southbound.stacklight:open_stacklight"
    ),
    "vision": EquipmentKind("edge.config:VisionSettings", "edge.southbound.vision:open_vision"),
    "ijt": EquipmentKind("edge.config:IjtSettings", "edge.southbound.ijt:open_ijt"),
}
"""Every kind, by the word that stands as `kind` in its section."""

EQUIPMENT_SETTINGS: Mapping[str, str] = {name: kind.settings for name, kind in KINDS.items()}
"""The type of the section of each kind, as `load_settings` asks for it."""
