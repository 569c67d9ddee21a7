"""The kinds of equipment, each with the location of its settings and of the function that opens it.

Both are in the module of the kind, unless this module imports the library of a protocol. Every command reads the
settings, and a command that only reads the store must not wait half a second for asyncua. Settings of such kinds are
in `edge.config`.
"""

from collections.abc import Mapping

from msgspec import Struct


class EquipmentKind(Struct, frozen=True):
    """The location of a kind, as `module:name`; it is imported when the settings name the kind.

    `settings` is the type of its section, `opener` the function that opens it: `opener(name, settings, station,
    scopes)` returns an asynchronous context manager with the `Equipment`. The opener of MQTT also takes a session, with
    a broker that it may share with the MES, and a CloudEvents source; that of a reader, what starts scanned jobs.
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
    "reader": EquipmentKind("edge.southbound.reader_settings:ReaderSettings", "edge.southbound.reader:open_reader"),
    "openprotocol": EquipmentKind(
        "edge.southbound.openprotocol_settings:OpenProtocolSettings",
        "edge.southbound.openprotocol:open_openprotocol_equipment",
    ),
}
"""Every kind, by the value of `kind` in its section."""

EQUIPMENT_SETTINGS: Mapping[str, str] = {name: kind.settings for name, kind in KINDS.items()}
"""The type of the section of each kind, for `load_settings`."""
