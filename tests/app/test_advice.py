from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.app.advice import (
    advise,
    connection_advice,
    examine_server,
    find_program,
    gateway_advice,
    install_advice,
    starts_with_gateway,
    store_advice,
)
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionFault
from edge.model.finding import HealthFinding, Level, ok
from tests.app.opcua_answering import answering, only

STORES = ("redis-check-rdb", "valkey-server")


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:6379", "redis://localhost", "unix:///run/redis.sock", "redis://[::1]"]
)
def test_advice_for_a_missing_local_server_is_to_install_it(url: str) -> None:
    assert str(install_advice(url, "redis-tools", STORES, lambda _: None)).startswith(
        "Install it: apt install redis-tools."
    )


def test_installed_server_has_no_advice_to_install() -> None:
    assert (
        install_advice("redis://localhost", "redis-tools", STORES, {"valkey-server": "/usr/bin/valkey-server"}.get)
        == ""
    )


def test_remote_server_has_no_advice_to_install() -> None:
    assert install_advice("mqtt://broker.plant", "mosquitto", ("mosquitto",), lambda _: None) == ""


def test_programs_of_servers_are_found() -> None:
    assert find_program("sh")
    assert find_program("no-such-server") is None


def test_advice_is_to_start_an_installed_gateway_or_to_install_it(tmp_path: Path) -> None:
    assert "apt install microdcs-edge" in str(gateway_advice([tmp_path]))
    (tmp_path / "microdcs-edge.service").touch()
    assert str(gateway_advice([tmp_path])) == "Start the gateway: systemctl start microdcs-edge"


def test_packaged_store_starts_with_the_installed_gateway(tmp_path: Path) -> None:
    url, redis = "unix:///run/redis-microdcs/redis.sock", {"redis-check-rdb": "/usr/bin/redis-check-rdb"}
    assert not starts_with_gateway(url, [tmp_path], redis.get)
    (tmp_path / "redis-server@microdcs.service").touch()
    assert starts_with_gateway(url, [tmp_path], redis.get)
    assert not starts_with_gateway(url, [tmp_path], lambda _: None)
    assert not starts_with_gateway("redis://localhost", [tmp_path], redis.get)


def test_stopped_packaged_store_is_started_by_the_gateway(tmp_path: Path) -> None:
    url, redis = "unix:///run/redis-microdcs/redis.sock", {"redis-check-rdb": "/usr/bin/redis-check-rdb"}
    for unit in ("redis-server@microdcs.service", "microdcs-edge.service"):
        (tmp_path / unit).touch()
    assert str(store_advice(url, [tmp_path], redis.get)).startswith("Start the gateway: systemctl start microdcs-edge.")
    assert str(store_advice(url, [tmp_path], lambda _: None)).startswith("Install it: apt install redis-tools.")
    assert store_advice("redis://localhost", [tmp_path], redis.get) == ""


async def _findings(failure: Unavailable) -> AsyncIterator[HealthFinding]:
    yield ok("store", "found")
    raise failure


@pytest.mark.parametrize(("advice", "expected"), [("Install it.", "Install it."), ("", "Start it.")])
async def test_advice_to_install_replaces_the_advice_to_start(advice: str, expected: str) -> None:
    findings = advise(_findings(Unavailable("not there", "Start it.")), advice)
    assert await anext(findings) == ok("store", "found")
    with pytest.raises(Unavailable, match="not there") as raised:
        await anext(findings)
    assert raised.value.advice == expected


GENERAL = "Switch it on and check its connection."


@pytest.mark.parametrize(
    "fault", [connection_fault for connection_fault in ConnectionFault if connection_fault is not ConnectionFault.OTHER]
)
def test_kind_of_reason_has_its_own_advice(fault: ConnectionFault) -> None:
    assert str(connection_advice(fault)) != GENERAL
    assert str(connection_advice(fault)).endswith(".")


@pytest.mark.parametrize("fault", ["", "other", "a kind of a later release"])
def test_other_reason_has_the_general_advice(fault: str) -> None:
    assert str(connection_advice(fault)) == GENERAL


@pytest.mark.parametrize(
    ("words", "level"), [(b"ACKF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)]
)
async def test_equipment_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        url = f"opc.tcp://localhost:{endpoint.rpartition(':')[2]}"
        finding = await only(examine_server("equipment camera", url, Text.of("Jobs wait for it.")))
    assert (finding.subject, finding.level) == ("equipment camera", level)
