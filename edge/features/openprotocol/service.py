"""Opens what tightening controllers with Open Protocol need: a lease, as several gateways may share one."""

from contextlib import AsyncExitStack
from functools import partial

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.features.openprotocol.equipment_lease import EquipmentLease


async def prepare_openprotocol(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return how a controller is leased."""
    return Opened(equipment={"openprotocol": (partial(EquipmentLease, core.store),)})
