"""Work on behalf of unknown clients is limited to a number of calls per period."""

from edge.links.rate_limit import RateLimit, WindowLimit


def test_rate_limit_permits_a_number_of_calls_per_period() -> None:
    now = [0.0]
    quota = RateLimit(2, 60.0, lambda: now[0])
    spent = []
    for now[0] in (0.0, 30.0, 59.0, 60.0, 61.0, 90.0, 91.0):
        spent.append(quota.try_acquire())
    assert spent == [True, True, False, True, False, True, False]


def test_window_admits_a_number_of_actions_and_reports_the_others() -> None:
    now, declined = [0.0], list[int]()
    window = WindowLimit(2, 60.0, declined.append, lambda: now[0])
    admitted = []
    for now[0] in (0.0, 30.0, 59.0, 60.0, 61.0, 62.0):
        admitted.append(window.try_acquire())
    assert (admitted, declined) == ([True, True, False, False, True, True], [2])
