"""Statements of the reference pages, checked from outside."""

import json
import re
import subprocess
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, Gateway, wait_for

pytestmark = pytest.mark.slow

_DOCS = Path(__file__).parents[2] / "docs"
_STAYS = ("as long as", "until", "bounded", "each entry")
"""How the lifetime of a key begins that has no expiry."""


def test_a_call_that_has_expired_is_not_executed(plant: Plant) -> None:
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    answer = plant.mes.start_job("J1", expirytime=past)
    assert answer.attributes["mdcserrorkind"] == "expired"
    assert plant.mes.start_job("J1").status == 1


def test_a_result_of_more_than_256_kib_fails_its_action(plant: Plant) -> None:
    plant.wrench.trace = "x" * (300 * 1024)
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Aborted", 60)
    plant.mes.client.wait(lambda: "too large" in str(plant.mes.result("J1")), "the reason is in the response", 60)


def test_every_key_of_the_store_is_on_its_page_with_type_and_lifetime(plant: Plant) -> None:
    """A key without an expiry is said to stay, or its entries have a lifetime."""
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended", 60)
    page = (_DOCS / "reference" / "redis.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \|.+\| (.+) \|$", page, re.MULTILINE)
    patterns = [
        (re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(key))), kind, not lifetime.startswith(_STAYS))
        for key, kind, lifetime in rows
    ]
    keys = [key for key in plant.store.cli("--scan", "--pattern", "*").split() if plant.store.cli("exists", key) == "1"]
    assert len(keys) > 10
    for key in keys:
        name, kind = key.removeprefix("microdcs-edge:"), plant.store.cli("type", key)
        expires = int(plant.store.cli("pttl", key)) > 0
        assert any(
            pattern.fullmatch(name) and (kind, expires) == (listed, listed_expires)
            for pattern, listed, listed_expires in patterns
        ), (key, kind, expires)


def test_every_served_metric_is_on_its_page(plant: Plant) -> None:
    port = free_port()
    settings = plant.gateway.settings
    settings.write_text(f'{settings.read_text()}\n[metrics]\nlisten = "127.0.0.1:{port}"\n')
    plant.gateway.stop()
    plant.gateway.start()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        served = set(re.findall(r"^# TYPE (microdcs_edge_\w+)", answer.read().decode(), re.MULTILINE))
    listed = set(re.findall(r"`(microdcs_edge_\w+)`", (_DOCS / "how-to" / "monitoring.md").read_text()))
    assert len(served) > 10
    assert served <= listed
    findings = json.loads(plant.gateway.cli("doctor", "--json"))["findings"]
    found = [(finding["level"], finding["found"]) for finding in findings if finding["subject"] == "metrics"]
    assert found == [("ok", f"answers at 127.0.0.1:{port}")]


def test_a_backup_restores_jobs_into_an_empty_store(plant: Plant, tmp_path: Path) -> None:
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended", 60)
    plant.gateway.stop()
    plant.gateway.cli("backup", str(tmp_path / "gateway.tar.gz"))
    plant.store.cli("flushall")
    assert "J1" not in plant.gateway.cli("jobs", "list", "--json")
    plant.gateway.cli("restore", str(tmp_path / "gateway.tar.gz"))
    wait_for(lambda: "J1" in plant.gateway.cli("jobs", "list", "--json"), "the job is back", 60)


def test_store_without_persistence_is_refused(plant: Plant) -> None:
    plant.gateway.stop()
    plant.store.cli("config", "set", "appendonly", "no")
    refused = _run(plant.gateway)
    assert refused.returncode == 2
    assert "appendonly" in refused.stderr + refused.stdout


def test_every_fault_of_the_settings_is_reported_at_once(plant: Plant) -> None:
    plant.gateway.stop()
    plant.gateway.settings.write_text('[gateway]\nname = "a b"\n[mqtt]\nurl = "http://x"\n[redis]\nurll = "x"\n')
    refused = _run(plant.gateway)
    assert refused.returncode == 2
    for text in ("gateway.name", "mqtt.url", "redis.urll"):
        assert text in refused.stderr + refused.stdout


def _run(gateway: Gateway) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [EDGE, "run", "--settings", gateway.settings]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
