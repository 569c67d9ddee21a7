"""What some kinds of equipment need of the gateway apart from their settings and the station."""

import functools

from edge.app.parts import GatewayParts
from edge.features.telemetry.store import alarms
from edge.station.equipment_lease import EquipmentLease


def further_ports(core: GatewayParts, kind: str) -> tuple[object, ...]:
    """Return what a kind of equipment needs apart from its settings and the station."""
    match kind:
        case "reader":
            return (core.scanned_jobs.put,)
        case "openprotocol":
            return (functools.partial(EquipmentLease, core.store),)
        case "stacklight":
            return (functools.partial(alarms.follow_kept, core.store),)
        case _:
            return ()
