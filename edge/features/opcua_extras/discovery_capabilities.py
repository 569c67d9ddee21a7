"""The capabilities of this server that discovery announces (OPC 10000-12, annex D)."""

import pkgutil

from edge.app.features import features
from edge.config import Settings


def discovery_capabilities(settings: Settings) -> tuple[str, ...]:
    """Return the identifiers of what clients find: live data, and what features add, such as alarms and history."""
    found = (pkgutil.resolve_name(feature.discovered_as)(settings) for feature in features() if feature.discovered_as)
    return ("DA", *(name for names in found for name in names))
