"""`edge audit` shows the records and detects missing and changed records."""

import json

import pytest

from edge.access.audit_trail import append
from edge.model.audit import AuditRecord
from tests.cli.calling import Edge
from tests.station.plant import Plant


@pytest.fixture
async def audited(plant: Plant) -> Plant:
    records = [
        AuditRecord(at=number, kind="mes.call", instance="gw-1", user=user, action="Start\x1b[2J", subject=f"J{number}")
        for number, user in enumerate(["/mes", "anna", "/mes"])
    ]
    await append(plant.store, records, 1000)
    return plant


@pytest.mark.usefixtures("plant")
async def test_empty_trail_is_complete(edge: Edge) -> None:
    assert (await edge("audit", "list")).output == "no audit records\n"
    verified = await edge("audit", "verify")
    assert (verified.exit_code, verified.output) == (0, "0 records, newest digest -, 0 faults\n")


@pytest.mark.usefixtures("audited")
async def test_newest_records_are_shown_without_control_characters(edge: Edge) -> None:
    header, *lines = (await edge("audit", "list", "--last", "2")).output.splitlines()
    assert header.split() == ["number", "at", "kind", "user", "action", "subject", "result", "comment"]
    assert [line.split()[0] for line in lines] == ["2", "3"]
    assert "\x1b" not in "".join(lines)


@pytest.mark.usefixtures("audited")
@pytest.mark.parametrize(
    ("option", "subjects"),
    [
        (("--user", "/mes"), ["J0", "J2"]),
        (("--user", "/mes", "--last", "1"), ["J2"]),
        (("--subject", "J1"), ["J1"]),
        (("--kind", "opcua.call"), []),
    ],
)
async def test_records_are_selected_by_user_subject_and_kind(
    edge: Edge, option: tuple[str, ...], subjects: list[str]
) -> None:
    shown = json.loads((await edge("audit", "list", *option, "--json")).output)
    assert [value["subject"] for value in shown] == subjects


async def test_records_removed_by_an_earlier_limit_are_not_missing(edge: Edge, plant: Plant) -> None:
    for number in range(300):
        record = AuditRecord(at=number, kind="mes.call", instance="gw-1", user="/mes", action="Start")
        await append(plant.store, [record] * 2, 150)
    assert await plant.store.execute("XLEN", plant.store.keys.audit()) < 600
    verified = await edge("audit", "verify")
    assert (verified.exit_code, verified.output.rpartition(", ")[2]) == (0, "0 faults\n")


async def test_verify_fails_after_a_record_was_removed(edge: Edge, audited: Plant) -> None:
    keys = audited.store.keys
    _, (middle, _), _ = await audited.store.execute("XRANGE", keys.audit(), "-", "+")
    await audited.store.execute("XDEL", keys.audit(), middle)
    verified = await edge("audit", "verify", "--json")
    assert verified.exit_code == 1
    assert [fault["number"] for fault in json.loads(verified.stdout)["faults"]] == [3]


@pytest.mark.usefixtures("plant")
async def test_changing_commands_are_recorded_with_their_result(edge: Edge) -> None:
    await edge("station", "set", "equipment", "wrench")
    await edge("jobs", "start", "none", "--comment", "shift begins")
    await edge("dead-letters", "retry", "none")
    await edge("flows", "stop", "none", "--reason", "night")
    await edge("jobs", "list")
    records = json.loads((await edge("audit", "list", "--json")).output)
    assert [record["action"] for record in records] == [
        "station PUT equipment",
        "jobs Start",
        "dead-letters retry",
        "flows stop",
    ]
    assert [record["status"] == "Good" for record in records] == [True, False, False, False]
    assert records[1]["comment"] == "shift begins"
    assert (await edge("audit", "verify")).exit_code == 0


@pytest.mark.usefixtures("audited")
async def test_audit_without_a_command_takes_the_options_of_list(edge: Edge) -> None:
    """`edge audit --settings FILE` was refused: there is no such option."""
    assert len(json.loads((await edge("audit", "--json")).output)) == 3
    wrong = await edge("audit", "--json", "verify")
    assert (wrong.exit_code, "after the command" in json.loads(wrong.stdout)["reason"]) == (2, True)
