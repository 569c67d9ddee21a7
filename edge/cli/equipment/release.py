"""Releases the open stops of equipment in the name of the user who runs the command."""

import uuid
from collections.abc import Sequence
from pathlib import Path

from edge.cli.terminal.audit import recorded
from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.store_access import SOURCE, open_access, usage_failure
from edge.model.isa95 import ReleasedStop
from edge.station.release import ReleaseRequest
from edge.station.release import release as release_open


async def release_stops(
    settings_file: Path | None, name: str, command_id: str | None, reason: str
) -> Sequence[ReleasedStop]:
    """Release the open stops and resets of equipment, all or those of one command; return them."""
    async with open_access(settings_file) as at:
        if name not in at.settings.southbound:
            usage_failure(f"the settings have no [southbound.{name}]")
        equipment = {name: at.settings.southbound[name].type_ids}
        request = ReleaseRequest(
            equipment=name,
            scopes=at.settings.gateway.scopes,
            command_id=command_id,
            by=operator_name(),
            reason=reason,
            source=SOURCE,
            event_id=str(uuid.uuid4()),
        )
        async with recorded(at, "equipment release", command_id or name, reason):
            return await release_open(at.store, equipment, request, at.settings.retention.dedupe * 1000)
