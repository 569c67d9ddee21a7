"""`[southbound.<name>]` of the kind `vision`."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edge.config import OpcuaEquipmentSettings


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
