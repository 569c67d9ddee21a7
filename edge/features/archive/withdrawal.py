"""A gateway whose archive is off withdraws: nothing waits for it any more."""

from contextlib import AsyncExitStack, suppress

from edge.app.parts import GatewayParts, Works
from edge.foundation.errors import Unavailable
from edge.store import archive_backlog


async def close_archive(_stack: AsyncExitStack, core: GatewayParts, _works: Works) -> None:
    """Remove what waits for an archive that was switched off."""
    with suppress(Unavailable):
        for scope in core.scopes:
            await core.store.commit(
                await archive_backlog.plan_withdrawal(core.store, scope, core.settings.gateway.name)
            )
