"""The number and the delays of attempts at work that meets a defect."""

MOST_TRIES = 5
"""The most attempts at work that meets a defect, which may be temporary. Then the work becomes a dead letter."""

_FIRST_S = 0.1
_MOST_S = 5.0


def delay_s(tries: int) -> float:
    """Return the delay after a number of attempts, at least one, in seconds."""
    return min(_FIRST_S * 2.0 ** min(tries - 1, 10), _MOST_S)
