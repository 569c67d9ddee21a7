"""The capabilities of this server that discovery announces (OPC 10000-12, annex D)."""


def discovery_capabilities(*, has_alarms: bool, has_history: bool) -> tuple[str, ...]:
    """Return the identifiers of what clients find: live data, alarms, history."""
    return ("DA", *(("AC",) if has_alarms else ()), *(("HD",) if has_history else ()))
