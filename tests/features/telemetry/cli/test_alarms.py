"""`edge alarms` lists, acknowledges and shelves alarms, also without a running gateway."""

import json

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.telemetry.cli.alarms import changes_table, report, table
from edge.ports.alarm import Alarm, AlarmChangeKind, public_alarm_change
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange
from tests.cli.calling import Edge
from tests.features.telemetry.test_alarm_requests import raised


@pytest_asyncio.fixture
async def alarm(store: Store) -> Alarm:
    """An alarm that is raised."""
    return await raised(store, "wrench.temp")


async def test_alarms_are_listed_for_people_and_programs(edge: Edge, alarm: Alarm) -> None:
    listed = await edge("alarms", "list")
    assert all(word in listed.output for word in (alarm.id[:8], "unacknowledged", "wrench.temp", "500", "hot"))
    (found,) = json.loads((await edge("alarms", "list", "--json")).output)
    assert (found["id"], found["state"], found["message"]) == (alarm.id, "unacknowledged", "hot")


async def test_message_is_printed_without_alarms(edge: Edge) -> None:
    assert (await edge("alarms", "list")).output == "no alarms\n"
    assert (await edge("alarms", "history")).output == "no changes\n"
    assert json.loads((await edge("alarms", "list", "--json")).output) == []


async def test_alarm_is_acknowledged_by_the_beginning_of_its_id(edge: Edge, alarm: Alarm) -> None:
    answer = await edge("alarms", "ack", alarm.id[:6], "--by", "bo", "--comment", "on my way")
    assert answer.output == f"{alarm.id}: acknowledged, now acknowledged\n"
    result = await edge("alarms", "show", alarm.id)
    assert "on my way" in result.output
    assert json.loads((await edge("alarms", "show", alarm.id, "--json")).output)["by"] == "bo"
    again = await edge("alarms", "ack", alarm.id)
    assert again.exit_code == 1
    assert "acknowledged already" in again.stderr
    history = await edge("alarms", "history")
    assert [word for word in ("raised", "acknowledged") if word in history.output] == ["raised", "acknowledged"]
    changes = json.loads((await edge("alarms", "history", "--json", "--count", 1)).output)
    assert [change["kind"] for change in changes] == ["acknowledged"]


async def test_alarm_is_shelved_and_unshelved(edge: Edge, alarm: Alarm, store: Store) -> None:
    assert "now shelved" in (await edge("alarms", "shelve", alarm.id, "--minutes", 30)).output
    shelving = (await alarms.load(store)).alarms[alarm.id].shelving
    assert shelving
    assert shelving.until is not None
    assert abs(shelving.until - shelving.at - 30 * 60_000) < 60_000
    assert "now unacknowledged" in (await edge("alarms", "unshelve", alarm.id)).output
    assert "now unacknowledged" in (await edge("alarms", "comment", alarm.id, "spare part ordered")).output


@pytest.mark.parametrize("command", ["confirm", "reset", "unshelve"])
async def test_request_not_allowed_in_the_alarm_state_is_refused(edge: Edge, alarm: Alarm, command: str) -> None:
    assert (await edge("alarms", command, alarm.id)).exit_code == 1


async def test_unknown_and_ambiguous_ids_are_refused(edge: Edge, store: Store) -> None:
    assert "there is no alarm" in (await edge("alarms", "ack", "zz")).stderr
    for number in range(17):
        await raised(store, f"t{number}")
    assert "alarms begin with" in (await edge("alarms", "ack", "")).stderr


ALARM = Alarm(id="3f9a" * 4, rule="hot", subject="a\x1b[2J", severity=500, message={"de": "heiß"}, raised_at=0)


def test_report_has_every_language_and_no_control_characters() -> None:
    lines = list(report(ALARM))
    assert any(line.startswith("message (de)") and line.endswith("heiß") for line in lines)
    assert "\x1b" not in "".join(lines)


def test_alarm_tables_have_a_row_for_each_alarm() -> None:
    assert table([ALARM, ALARM]).row_count == 2
    assert changes_table([AlarmChange(ALARM, AlarmChangeKind.RAISED)]).row_count == 1


def test_person_is_named_only_for_changes_made_by_a_person() -> None:
    alarm = replace(ALARM, by="bo")
    kinds = (AlarmChangeKind.ACKNOWLEDGED, AlarmChangeKind.CLEARED, AlarmChangeKind.RAISED)
    assert [public_alarm_change(alarm, kind).by for kind in kinds] == ["bo", "", ""]
