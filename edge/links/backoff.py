"""How long to wait before the next attempt."""

import random


def delay(attempt: int, shortest: float, longest: float) -> float:
    """Give the delay before an attempt, in seconds: doubling, and jittered lest all clients march in step."""
    longest_now = min(longest, shortest * 2.0 ** min(attempt, 16))
    return longest_now * random.uniform(0.5, 1.0)  # noqa: S311 - chance, not a secret
