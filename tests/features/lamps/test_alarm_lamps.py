"""Lamps show the alarms of their severities: flashing while one waits for a person, steady while it holds."""

import pytest

from edge.features.lamps.alarm_lamps import LampState, lamp_states, show_alarms
from edge.features.lamps.lines import FakeLines
from edge.ports.alarm import AckState, ActiveState, Alarm, Shelving
from tests.conftest import WaitUntil
from tests.equipment.alarm_feed import AlarmFeed, alarm

SEVERITIES = {"yellow": 300, "red": 700}
SEEN = AckState.ACKNOWLEDGED
SHELVED = Alarm(
    id="x", rule="r", subject="s", active=ActiveState.ACTIVE, severity=900, shelving=Shelving(by="me", at=1)
)


@pytest.mark.parametrize(
    ("alarms", "expected"),
    [
        ((), {}),
        ((alarm(299),), {}),
        ((alarm(300),), {"yellow": LampState.FLASHING}),
        ((alarm(699, SEEN), alarm(1000)), {"yellow": LampState.ON, "red": LampState.FLASHING}),
        ((alarm(700, SEEN), alarm(800), alarm(900, SEEN)), {"red": LampState.FLASHING}),
        ((alarm(700, AckState.UNACKNOWLEDGED, ActiveState.INACTIVE),), {"red": LampState.FLASHING}),
        ((alarm(700, AckState.CONFIRMED, ActiveState.INACTIVE),), {}),
        ((alarm(700, SEEN, ActiveState.LATCHED),), {"red": LampState.ON}),
        ((SHELVED,), {}),
    ],
)
def test_lamp_shows_the_alarms_of_its_severities(alarms: tuple[Alarm, ...], expected: dict[str, LampState]) -> None:
    assert lamp_states(alarms, SEVERITIES) == dict.fromkeys(SEVERITIES, LampState.OFF) | expected


async def test_lamp_flashes_until_its_alarm_is_acknowledged(wait_until: WaitUntil) -> None:
    lines, feed, seen = FakeLines(SEVERITIES), AlarmFeed(), set[bool]()

    def has_flashed() -> bool:
        seen.add(lines.lit["red"])
        return len(seen) == 2

    async with show_alarms(lines, SEVERITIES, feed.follow, flash_s=0.005):
        feed.put(alarm(800), alarm(400, SEEN))
        await wait_until(has_flashed)
        assert lines.lit["yellow"]
        feed.put(alarm(800, SEEN))
        await wait_until(lambda: lines.lit == {"yellow": False, "red": True})
        feed.put()
        await wait_until(lambda: not any(lines.lit.values()))
