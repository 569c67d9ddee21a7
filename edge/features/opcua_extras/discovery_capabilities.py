"""The capabilities of this server that discovery announces (OPC 10000-12, annex D)."""

from edge.app.features import features
from edge.config import Settings


def discovery_capabilities(settings: Settings) -> tuple[str, ...]:
    """Return the identifiers of what clients find: live data, and what features add, such as alarms and history."""
    return ("DA", *(name for each in features() for name in each.discovered_as(settings)))
