"""Retry delays double up to a limit."""

from edge.station.retry import delay_s


def test_retry_delay_doubles_up_to_a_limit() -> None:
    assert [delay_s(tries) for tries in range(1, 5)] == [0.1, 0.2, 0.4, 0.8]
    assert delay_s(7) == delay_s(10_000) == 5.0
