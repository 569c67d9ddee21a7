"""How often work that meets a defect is tried again, and after what delays."""

MOST_TRIES = 5
"""So often is work tried that meets a defect: it may lie in something that passes. Then it is set aside."""

_FIRST_S = 0.1
_MOST_S = 5.0


def delay_s(tries: int) -> float:
    """Return how long to wait after so many tries, at least one."""
    return min(_FIRST_S * 2.0 ** min(tries - 1, 10), _MOST_S)
