"""Text form of equipment: its state, unknown values, and reports that are no longer current."""

import pytest

from edge.cli.equipment.table import EquipmentView, equipment_views, ping_data, report
from edge.maintenance.ping import PingResult
from edge.model.equipment_health import EquipmentHealth, EquipmentReport
from edge.store.health_reports import GatewayReport

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


@pytest.mark.parametrize(("seconds", "milliseconds"), [(0.0123456, 12.346), (None, None)])
def test_json_output_of_a_ping_has_milliseconds(seconds: float | None, milliseconds: float | None) -> None:
    assert ping_data("wrench", PingResult(None, "nothing", seconds))["milliseconds"] == milliseconds
