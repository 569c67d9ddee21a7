"""Samples from an OPC UA server of another vendor and from the Redis of another system become alarms of a gateway."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.servers import Gateway, Store, ended, wait_for

# node-opcua reads its node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

RULES = [
    {"id": "hot", "kind": "limit", "tag": "*.temp", "limits": {"high": {"at": 80, "severity": 500}}},
    {"id": "silent", "kind": "stale", "tag": "oven.temp", "seconds": 3, "severity": 400},
    {"id": "load", "kind": "limit", "tag": "line.load", "limits": {"high": {"at": 5, "severity": 300}}},
]
_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "samples-from-redis.md"
READER = _PAGE.read_text().partition("ACL SETUSER gateway on >a-password -@all ")[2].partition("\n")[0].split()
"""The rights that the page about this source asks for."""


@dataclass
class Site:
    """A gateway with an oven over OPC UA and a line controller with a Redis of its own."""

    store: Store
    line: Store
    oven: OpcuaDevice
    gateway: Gateway

    def heat(self, value: float, status: str = "Good") -> None:
        """Write the temperature of the oven."""
        self.oven.heat(value, status)

    def alarm(self, rule: str, subject: str) -> dict[str, Any] | None:
        """Return an alarm that is kept."""
        lines = self.store.cli("HVALS", "microdcs-edge:alarms").splitlines()
        alarms = [json.loads(line) for line in lines if line.startswith("{")]
        return next((alarm for alarm in alarms if (alarm["rule"], alarm["subject"]) == (rule, subject)), None)

    def wait_for_alarm(self, rule: str, subject: str, active: str) -> None:
        """Wait until an alarm is active or inactive."""

        def there() -> bool:
            found = self.alarm(rule, subject)
            return found is not None and found.get("active", "inactive") == active

        wait_for(there, f"{rule} of {subject} is {active}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("sources")
    store, line = Store(directory / "store"), Store(directory / "line")
    oven = OpcuaDevice(directory / "oven", "oven", 0)
    store.start()
    line.start()
    line.cli("ACL", "SETUSER", "reader", "on", ">pw", "-@all", *READER)
    rules = directory / "rules.json"
    rules.write_text(json.dumps(RULES))
    gateway = Gateway(
        directory / "gateway",
        "edge",
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = ""\n[opcua]\nendpoint = ""\n'
        f'[telemetry]\nrules = "{rules}"\nrecord = "all"\n'
        f'[source.oven]\nkind = "opcua"\nurl = "{oven.url}"\nsecurity = "none"\nsampling_interval = 50\n'
        'nodes = ["oven.temp = nsu=urn:oven;s=Temperature", "oven.state = /Oven/State"]\n'
        f'[source.line]\nkind = "redis"\nurl = "unix://reader:pw@{line.socket}"\ninterval = 0.1\n'
        'patterns = ["Ovens:*:temp"]\nkeys = ["line:load", "line:garbage", "line:list"]\n'
        f'[mirror.carriers]\nurl = "unix://reader:pw@{line.socket}"\nkey = "carriers"\n',
    )
    with ended(store, line, oven, gateway):
        oven.start()
        gateway.start()
        yield Site(store, line, oven, gateway)


def test_variable_of_an_opcua_server_becomes_an_alarm(site: Site) -> None:
    site.heat(85)
    site.wait_for_alarm("hot", "oven.temp", "active")
    site.heat(99, "BadSensorFailure")
    site.heat(60, "UncertainSensorNotAccurate")
    site.wait_for_alarm("hot", "oven.temp", "inactive")
    # The last samples are saved every five seconds.
    wait_for(lambda: site.store.cli("HEXISTS", "microdcs-edge:tags", "oven.state") == "1", "the state is a tag")


def test_tags_of_an_unavailable_server_are_stale_until_it_returns(site: Site) -> None:
    site.oven.cut(6000)
    site.wait_for_alarm("silent", "oven.temp", "active")
    # Its first value is as old as the last change; it is current all the same, for the time of the rule.
    site.wait_for_alarm("silent", "oven.temp", "inactive")


def test_channels_and_keys_of_a_foreign_redis_become_alarms(site: Site) -> None:
    before = site.line.cli("DBSIZE")
    assert wait_for_subscriber(site)
    site.line.cli("PUBLISH", "Ovens:7:temp", "91.5")
    site.wait_for_alarm("hot", "Ovens.7.temp", "active")
    site.line.cli("SET", "line:load", "7")
    site.wait_for_alarm("load", "line.load", "active")
    site.line.cli("SET", "line:load", "1")
    site.wait_for_alarm("load", "line.load", "inactive")
    assert int(site.line.cli("DBSIZE")) == int(before) + 1


@pytest.mark.parametrize(
    ("command", "members"),
    [
        (("SADD", "carriers", "C1", "C2"), {"C1", "C2"}),
        (("RPUSH", "carriers", "C3"), {"C3"}),
        (("SET", "carriers", '["C4", "C5"]'), {"C4", "C5"}),
    ],
)
def test_reader_may_mirror_a_set_a_list_and_a_text(site: Site, command: tuple[str, ...], members: set[str]) -> None:
    site.line.cli("DEL", "carriers")
    site.line.cli(*command)
    wait_for(
        lambda: set(site.store.cli("SMEMBERS", "microdcs-edge:mirror:carriers").split()) == members, "it is mirrored"
    )


def test_faulty_slow_or_stopped_foreign_redis_does_not_affect_others(site: Site) -> None:
    site.line.cli("SET", "line:garbage", "\x91" * 30_000)
    site.line.cli("RPUSH", "line:list", "a")
    site.line.cli("EVAL", "redis.call('SET', 'line:garbage', string.rep(string.char(0x91), 60000))", "0")
    assert wait_for_subscriber(site)
    site.line.cli("EVAL", "redis.call('PUBLISH', 'Ovens:9:temp', string.rep('x', 9000000))", "0")
    site.line.freeze()
    wait_for(lambda: "source unavailable" in site.gateway.log.read_text(), "the frozen server is noticed")
    site.heat(85)
    site.wait_for_alarm("hot", "oven.temp", "active")
    site.heat(60)
    site.wait_for_alarm("hot", "oven.temp", "inactive")
    site.line.thaw()
    wait_for(lambda: "source available again" in site.gateway.log.read_text(), "the server is read again")
    site.line.kill()
    site.line.start()
    site.line.cli("ACL", "SETUSER", "reader", "on", ">pw", "-@all", *READER)
    site.line.cli("SET", "line:load", "9")
    site.wait_for_alarm("load", "line.load", "active")
    assert wait_for_subscriber(site)
    site.line.cli("PUBLISH", "Ovens:8:temp", "91.5")
    site.wait_for_alarm("hot", "Ovens.8.temp", "active")
    assert site.gateway.log.read_text().count('"sample dropped"') < 20
    assert site.gateway.memory() < 150


def wait_for_subscriber(site: Site) -> bool:
    """Wait until the gateway has subscribed to the channels."""
    wait_for(lambda: site.line.cli("PUBSUB", "NUMPAT") == "1", "the gateway subscribes")
    return True
