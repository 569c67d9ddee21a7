"""The kinds of equipment, each with the location of its settings and of the function that opens it.

Both are in the module of the kind, unless this module imports the library of a protocol. Every command reads the
settings, and a command that only reads the store must not wait half a second for asyncua. Settings of such kinds are
in `edge.config`.
"""

from typing import Final

from msgspec import Struct


class EquipmentKind(Struct, frozen=True):
    """The location of a kind, as `module:name`; it is imported when the settings name the kind.

    `settings` is the type of its section, `opener` the function that opens it: `opener(name, settings, station,
    scopes)` returns an asynchronous context manager with the `Equipment`. The opener of MQTT also takes a session, with
    a broker that it may share with the MES, and a CloudEvents source; that of a reader, what starts scanned jobs.
    """

    settings: str
    opener: str
    number: int
    """Its value in OPC UA, where a kind is an enumeration: no other kind has it, or had it."""
    ping: str = ""
    """The function that pings it on a connection of its own: `ping(name, section, settings) -> PingResult`; it raises
    Refused, SettingsError and Unavailable. Empty where the gateway alone reaches it."""
    members: tuple[str, ...] = ()
    """The members that its results have; more may come."""
    action_types: str = ""
    """The function that returns what recipes name for it: `action_types(section, programs) -> ActionTypes`, with its
    programs as `EquipmentHealth` lists them. Empty where only the equipment knows its parameters."""


CORE_KINDS: Final = {
    "mqtt": EquipmentKind(
        "edge.config:MqttEquipmentSettings",
        "edge.equipment.mqtt:open_equipment",
        number=1,
        ping="edge.equipment.mqtt_presence:ping",
    ),
}
"""The kinds of the core; a feature declares its own."""
