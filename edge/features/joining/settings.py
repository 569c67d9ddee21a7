"""`[southbound.<name>]` of the kind `ijt`."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edge.config import OpcuaEquipmentSettings


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
