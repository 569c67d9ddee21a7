"""The notice of an alarm contains every member of the alarm."""

import msgspec

from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind
from edge.ports.alarm_message import AlarmNotice


def test_notice_has_the_members_of_its_alarm() -> None:
    alarm = Alarm(id="a", rule="r", subject="s", active=ActiveState.LATCHED, acknowledgement=AckState.ACKNOWLEDGED)
    notice = AlarmNotice.of(alarm, AlarmChangeKind.RESET)
    assert (notice.active, notice.acknowledged, notice.confirmed) == (True, True, False)
    names = {"id", "active", "acknowledgement", "latch", "confirm"}
    assert set(msgspec.structs.asdict(alarm)) - names <= set(msgspec.structs.asdict(notice))
