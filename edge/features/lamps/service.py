"""Opens what stack lights need: the alarms that their lamps show."""

from contextlib import AsyncExitStack
from functools import partial

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.store import kept_alarms as alarms


async def prepare_lamps(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return how stack lights follow the kept alarms."""
    return Opened(equipment={"stacklight": (partial(alarms.follow_kept, core.store),)})
