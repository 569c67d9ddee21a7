"""The retention of marks is checked against the redelivery time of the broker."""

import pytest

from edge.config import SESSION_EXPIRY_SECONDS, RetentionSettings


@pytest.mark.parametrize(
    ("dedupe", "autosave", "refused"),
    [
        (SESSION_EXPIRY_SECONDS + 1800, 1800, False),
        (SESSION_EXPIRY_SECONDS + 1799, 1800, True),
        (600, 0, True),
        (SESSION_EXPIRY_SECONDS, 0, False),
    ],
)
def test_mark_retention_below_the_redelivery_time_is_refused(dedupe: int, autosave: int, *, refused: bool) -> None:
    problems = list(RetentionSettings(dedupe=dedupe).conflicts("mqtt://broker", autosave))
    assert bool(problems) == refused
    assert all(str(SESSION_EXPIRY_SECONDS + autosave) in str(problem) for problem in problems)


def test_any_retention_is_accepted_without_a_broker() -> None:
    assert list(RetentionSettings(dedupe=600).conflicts("", 1800)) == []


def test_default_retention_fits_the_default_broker() -> None:
    assert list(RetentionSettings().conflicts("mqtt://broker", 1800)) == []
