"""The settings of a tightening controller with Open Protocol."""

from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from edge.config import EquipmentSettings

PORT = 4545
"""The port of Open Protocol, for a URL without one."""


class OpenProtocolSettings(EquipmentSettings, frozen=True, kw_only=True):
    """`[southbound.<name>]`: a tightening controller with Open Protocol, and the actions it takes."""

    kind: Annotated[Literal["openprotocol"], Meta(description="Protocol.")]
    url: Annotated[
        str,
        Meta(
            description="Address of the controller, as in `tcp://192.168.1.30:4545`; one port for each tool.",
            extra={"schemes": ("tcp",)},
        ),
    ]
    correlation: Annotated[
        Literal["mark", "next"],
        Meta(
            description="How the result of a command is recognised: `mark` writes a mark into the identifier (VIN) of "
            "the result; `next` takes the next result after the start, for controllers without identifiers."
        ),
    ] = "mark"
    lock: Annotated[
        Literal["on", "off"],
        Meta(
            description="`on` enables the tool for a command and disables it after its result; `off` never does: "
            "another system locks the tool."
        ),
    ] = "on"
    link_layer: Annotated[
        Literal["auto", "off"],
        Meta(description="`auto` uses the sequence numbers of a controller that offers them; `off` never does."),
    ] = "auto"
    revisions: Annotated[
        Mapping[
            Literal["0001", "0030", "0032", "0034", "0038", "0039", "0060", "0064"], Annotated[int, Meta(ge=1, le=999)]
        ],
        Meta(
            description="The revision of a message, by its number, as in `{ 0001 = 3, 0060 = 1 }`. Without an entry, "
            "the newest one that the controller accepts is found and kept.",
            extra={"expected": "a table of revisions from 1 to 999, as in { 0001 = 3, 0060 = 1 }"},
        ),
    ] = msgspec.field(default_factory=dict)
    spindles: Annotated[
        Literal["one", "several"],
        Meta(description="`several` takes the results of a spindle system (MID 0101); they cannot be requested again."),
    ] = "one"
    traces: Annotated[
        Literal["off", "on"],
        Meta(description="`on` subscribes to the curves of torque and angle (MID 0900), for `[traces] directory`."),
    ] = "off"
    clock: Annotated[
        Literal["leave", "set"],
        Meta(description="`set` corrects the clock of the controller at each connection, to the local time."),
    ] = "leave"
    events: Annotated[
        Mapping[Literal["identifier", "result", "alarm", "parameter_set", "job"], str],
        Meta(
            description="The `type_id` of the event for an identifier that is scanned at the controller, a result of "
            "the operator's own, an alarm, or a parameter set or a job that is selected there while no command is at "
            "work.",
            extra={"expected": 'a table of type_ids, as in { identifier = "com.example.station.scanned.v1" }'},
        ),
    ] = msgspec.field(default_factory=dict)


def address_of(settings: OpenProtocolSettings) -> tuple[str, int]:
    """Return the host and the port of the controller."""
    parts = urlsplit(settings.url)
    return parts.hostname or "", parts.port or PORT
