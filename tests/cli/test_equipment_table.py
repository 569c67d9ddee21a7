"""Text form of equipment: its state, unknown values, and reports that are no longer current."""

import pytest
from msgspec.structs import replace

from edge.access.instances import EquipmentView, GatewayReport, equipment_views
from edge.cli.equipment import ping_data, report, table
from edge.equipment.ping import PingResult
from edge.model.equipment_connection import ConnectionState, PublicConnection
from edge.model.equipment_health import (
    EquipmentHealth,
    EquipmentReport,
    OpenSafing,
    PublicEquipment,
    PublicSafing,
    public_equipment,
)


def public(view: EquipmentView) -> PublicEquipment:
    return public_equipment(view.health, view.gateway, view.at, at_work=view.at_work)


WRENCH = EquipmentHealth(name="wrench", kind="mqtt", connected=False)


def test_gateway_without_a_report_has_no_equipment() -> None:
    reported = {
        "a": GatewayReport(None, at_work=True),
        "b": GatewayReport(EquipmentReport(at=5, equipment=(WRENCH,)), at_work=True),
    }
    assert equipment_views(reported) == [EquipmentView("b", True, 5, WRENCH)]


def test_equipment_that_was_never_seen_is_reported_as_such() -> None:
    lines = dict(line.split("  ", 1) for line in report(EquipmentView("edge", True, 5, WRENCH)))
    assert lines["connected"].strip() == "no"
    assert lines["last seen"].strip() == "not since the gateway started"
    assert lines["last error"].strip() == "none"


REFUSED = ConnectionState(
    connected=False, since=1_767_322_740_000, fault="refused", reason="cannot connect to 10.0.0.5:4545", retry_s=5.0
)


def test_reason_why_equipment_is_not_connected_is_reported() -> None:
    health = EquipmentHealth(name="op", kind="openprotocol", connected=False, connection=REFUSED)
    lines = dict(line.split("  ", 1) for line in report(EquipmentView("edge", True, 5, health)))
    assert lines["connected"].strip().startswith("no, since 2026-01-0")
    assert lines["not connected"].strip() == "refused: cannot connect to 10.0.0.5:4545"
    assert lines["next try"].strip() == "within 5 s"
    assert public(EquipmentView("edge", True, 5, health)).connection == PublicConnection(
        connected=False,
        since="2026-01-02T02:59:00.000Z",
        fault="refused",
        reason="cannot connect to 10.0.0.5:4545",
        retry_seconds=5.0,
        holder="",
    )


def test_gateway_that_connects_to_equipment_for_another_is_shown() -> None:
    state = ConnectionState(holder="gw-1")
    view = EquipmentView("gw-2", True, 5, EquipmentHealth(name="op", kind="openprotocol", connection=state))
    assert "connected  by gw-1" in [" ".join(line.split()).replace(" ", "  ", 1) for line in report(view)]
    assert (public(view).connected, public(view).connection.holder) == (None, "gw-1")


def test_equipment_that_is_connected_has_no_reason_in_its_report() -> None:
    health = EquipmentHealth(name="op", kind="mqtt", connected=True, connection=ConnectionState(connected=True))
    names = [line.split("  ", 1)[0] for line in report(EquipmentView("edge", True, 5, health))]
    assert "not connected" not in names
    assert "next try" not in names


def test_each_unconfirmed_stop_is_listed_with_its_tries_and_reason() -> None:
    stop = OpenSafing(what="stop", command_id="J1/R/a/1", since=0, tries=3, reason="the tool is locked")
    unsafe = replace(WRENCH, safing=2, open_safing=(stop, OpenSafing(what="release", since=0, tries=1)))
    view = EquipmentView("edge", True, 5, unsafe)
    lines = [line.strip() for line in report(view) if " since 1970" in line]
    assert [line.partition(" since ")[0] for line in lines] == ["stop of J1/R/a/1", "release"]
    assert lines[0].endswith("3 tries: the tool is locked")
    assert lines[1].endswith("1 try: no answer yet")
    assert public(view).open_safing[0] == PublicSafing(
        what="stop", command_id="J1/R/a/1", since="1970-01-01T00:00:00.000Z", tries=3, reason="the tool is locked"
    )


def test_disconnected_tool_that_may_be_active_is_listed_as_such() -> None:
    stop = OpenSafing(what="stop", command_id="J1/R/a/1", since=0, tries=3, reason="the tool is locked")
    unsafe = replace(WRENCH, safing=1, open_safing=(stop,), connection=REFUSED)
    (trouble,) = table([EquipmentView("edge", True, 5, unsafe)]).columns[-1].cells
    assert str(trouble) == (
        "the tool may still be active, not confirmed since 1970-01-01 00:00:00Z: stop of J1/R/a/1: the tool is locked; "
        "not connected: refused: cannot connect to 10.0.0.5:4545"
    )


@pytest.mark.parametrize(("seconds", "shown"), [(0.0123456789, 0.012346), (None, None)])
def test_json_output_of_a_ping_has_seconds(seconds: float | None, shown: float | None) -> None:
    assert ping_data("wrench", PingResult(None, "nothing", seconds))["response_seconds"] == shown


def test_result_that_did_not_count_is_shown_with_the_reason() -> None:
    view = EquipmentView("gw", True, 5, replace(WRENCH, last_late="7: its program is not the commanded one", late=1))
    lines = dict(line.split("  ", 1) for line in report(view))
    assert lines["did not count"].strip().endswith("result 7: its program is not the commanded one")
    assert (public(view).last_late_at, public(view).last_late) == (None, "7: its program is not the commanded one")
