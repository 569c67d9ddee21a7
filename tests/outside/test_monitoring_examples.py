"""The dashboard and the alert rules of the package use metrics that exist."""

import json
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "systemd" / "examples"
_METRIC = re.compile(r"microdcs_edge_\w+")
_PAGE = (_ROOT / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")


def listed() -> set[str]:
    """Return the metrics of the page, which another test compares with those that are served."""
    found = set(re.findall(r"`(microdcs_edge_\w+)`", _PAGE))
    return found | {f"{value}_bucket" for value in found}


@pytest.mark.parametrize(("name", "least"), [("grafana-telemetry.json", 10), ("grafana-flows.json", 7)])
def test_dashboard_shows_metrics_that_exist(name: str, least: int) -> None:
    board = json.loads((_EXAMPLES / name).read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) >= least
    for expression in expressions:
        assert set(_METRIC.findall(expression)) <= listed(), expression
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_alert_rules_of_the_package_match_the_page() -> None:
    rules = (_EXAMPLES / "prometheus-telemetry.yml").read_text(encoding="utf-8")
    _, _, alerts = rules.partition("    rules:\n")
    assert alerts in _PAGE
    assert set(_METRIC.findall(alerts)) <= listed()
