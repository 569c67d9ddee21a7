"""Definition of an instant."""

from datetime import UTC, datetime

from edge.instant import now_ms


def test_instant_is_in_milliseconds_since_the_epoch() -> None:
    before = datetime.now(UTC)
    reported = datetime.fromtimestamp(now_ms() / 1000, UTC)
    assert 0 <= (reported - before.replace(microsecond=before.microsecond // 1000 * 1000)).total_seconds() < 60
