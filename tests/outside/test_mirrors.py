"""Gateways of one store copy a set of another system, whichever of them is there."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.outside.plant import Mes, Wrench
from tests.outside.servers import PREFIX, ROOT, SCOPE, Broker, Gateway, Store, ended, wait_for

pytestmark = pytest.mark.slow

LEFT = {"id": "early", "kind": "occurs", "pattern": "carriers.left", "while": "job.running", "severity": 700}
PAGE = ROOT / "docs" / "how-to" / "samples-from-redis.md"
READ = re.findall(r"^    redis-cli (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0].split()
"""The command of the page that prints the copy."""
COPY = READ[-1]


@dataclass
class Site:
    """Two gateways on one store, and the Redis of a line controller."""

    line: Store
    store: Store
    gateways: list[Gateway]
    mes: Mes
    wrench: Wrench

    def members(self) -> set[str]:
        """Return the members of the copy."""
        return set(self.store.cli(*READ).split())

    def wait_for_members(self, count: int) -> None:
        """Wait until the copy has so many members."""
        wait_for(lambda: self.store.cli("SCARD", COPY) == str(count), f"the copy has {count} members")

    def wait_for_alarm(self, job: str) -> None:
        """Wait for an alarm of a job."""
        self.mes.client.wait(lambda: job in self.jobs_of_alarms(), f"the alarm of {job}")

    def jobs_of_alarms(self) -> list[str]:
        """Return the jobs of the alarms that the MES received, in order, each once."""
        changes: dict[str, Any] = {
            received.attributes["id"]: received.data
            for received in list(self.mes.client.received)
            if received.topic == f"{PREFIX}/{SCOPE}/alarms"
        }
        return [change["alarm"]["job"] for change in changes.values() if change["kind"] == "raised"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    broker, store, line = Broker(tmp_path / "broker"), Store(tmp_path / "store"), Store(tmp_path / "line")
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps([LEFT]))
    with ended(broker, store, line):
        for item in (broker, store, line):
            item.start()
        settings = (
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n[telemetry]\nrules = "{rules}"\n'
            f'[mirror.carriers]\nurl = "unix://{line.socket}"\nkey = "carriers"\n'
            f'[southbound.wrench]\ntype_ids = ["com.example.station.tighten.v1"]\ntopic_prefix = "{PREFIX}/equipment"\n'
        )
        gateways = [Gateway(tmp_path / name, name, settings) for name in ("first", "second")]
        mes, wrench = Mes(broker.port), Wrench(broker.port)
        with ended(*gateways):
            for gateway in gateways:
                gateway.start()
            wrench.open()
            mes.open()
            mes.client.subscribe(f"{PREFIX}/{SCOPE}/alarms")
            mes.configure()
            try:
                yield Site(line, store, gateways, mes, wrench)
            finally:
                mes.client.close()
                wrench.client.close()


def test_carrier_leaving_after_a_gateway_was_killed_is_an_alarm(site: Site) -> None:
    """Whichever gateway reads the set, the other one continues: each is killed once."""
    site.wrench.holds = True
    jobs = [f"C{number}" for number in range(len(site.gateways))]
    site.line.cli("SADD", "carriers", *jobs)
    site.wait_for_members(len(jobs))
    for job, gateway in zip(jobs, site.gateways, strict=True):
        assert site.mes.start_job(job).status == 1
        site.mes.wait_for_state(job, "Running")
        gateway.kill()
        site.line.cli("SREM", "carriers", job)
        site.wait_for_alarm(job)
        gateway.start()
    assert site.jobs_of_alarms() == jobs


def test_set_of_many_members_is_copied_whole(site: Site) -> None:
    members = [f"carrier-{number:05}" for number in range(9000)]
    site.line.cli("SADD", "carriers", *members)
    site.wait_for_members(len(members))
    site.line.cli("SREM", "carriers", *members[:5000])
    site.wait_for_members(4000)
    assert site.members() == set(members[5000:])
    assert [gateway.status.startswith("serving, degraded") for gateway in site.gateways] == [False, False]


def test_copy_is_kept_and_stale_while_the_other_redis_is_gone(site: Site) -> None:
    site.line.cli("SADD", "carriers", "C1", "C2")
    site.wait_for_members(2)
    site.line.kill()
    wait_for(lambda: "mirror stale" in "".join(gateway.log.read_text() for gateway in site.gateways), "it is stale")
    assert site.members() == {"C1", "C2"}
    assert site.mes.start_job("J1").status == 1
    site.mes.wait_for_state("J1", "Ended")
    site.line.start()
    wait_for(lambda: site.line.cli("DBSIZE") == "1", "the line controller is there")
    site.line.cli("SREM", "carriers", "C2")
    site.wait_for_members(1)
    assert site.line.cli("KEYS", "*") == "carriers"
