"""Work on behalf of unknown clients is limited to a number of calls per period."""

from edge.links.rate_limit import RateLimit


def test_rate_limit_permits_a_number_of_calls_per_period() -> None:
    now = [0.0]
    quota = RateLimit(2, 60.0, lambda: now[0])
    spent = []
    for now[0] in (0.0, 30.0, 59.0, 60.0, 61.0, 90.0, 91.0):
        spent.append(quota.try_acquire())
    assert spent == [True, True, False, True, False, True, False]
