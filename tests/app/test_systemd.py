"""systemd is notified of readiness, of the watchdog, and of the stop of the gateway."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from edge.app.systemd import feed_watchdog, notifier
from edge.config import MqttSettings, RedisSettings
from edge.links.mqtt import Message, open_session
from tests.app.running import edge_run, opcua_in, settings_of, written

pytestmark = pytest.mark.slow

pytest.importorskip("systemd")


class Systemd:
    """The socket of systemd: the messages that it received, in order."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.reported: list[str] = []

    async def until(self, beginning: str, deadline: float = 60.0) -> str:
        """Read messages until one has this beginning; return it."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(deadline):
            while True:
                message = (await loop.sock_recv(self._listening, 4096)).decode()
                self.reported.append(message)
                if message.startswith(beginning):
                    return message


@asynccontextmanager
async def listening(directory: Path) -> AsyncIterator[Systemd]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
        opened.setblocking(False)
        opened.bind(str(directory / "notify"))
        yield Systemd(opened)


def test_notify_socket_that_cannot_be_written_is_logged_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nowhere"))
    with capture_logs() as logs:
        notify = notifier()
        notify("READY=1")
        notify("WATCHDOG=1")
    assert [entry["event"] for entry in logs] == ["systemd notification failed"]
    assert str(tmp_path / "nowhere") in logs[0]["reason"]


def test_blocked_notify_socket_does_not_delay_the_gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The queue of a datagram socket is full after a few messages; the gateway must not wait for its reader."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    began = time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unread, capture_logs() as logs:
        unread.bind(str(tmp_path / "notify"))
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        notify = notifier()
        for _ in range(20):
            notify("STATUS=" + "x" * 1000)
    assert [entry["event"] for entry in logs] == ["systemd notification failed"]
    assert time.monotonic() - began < 30


async def test_ready_is_reported_once_opc_ua_and_mqtt_calls_are_served(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    file = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    answers: asyncio.Queue[Message] = asyncio.Queue()
    async with listening(tmp_path) as systemd, open_session(mqtt, f"{unique}-mes", session_expiry=0) as mes:
        await mes.subscribe(f"{unique}/answers", answers.put)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "150000"}
        async with edge_run("--settings", file, **environment) as gateway:
            ready = await systemd.until("READY=1")
            # At this moment, not a little later: what is listened to and subscribed is there.
            await mes.publish(f"{unique}/station-1/commands", b"?", response_topic=f"{unique}/answers")
            _, _, address = ready.partition("opc.tcp://")
            host, _, port = address.partition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            async with asyncio.timeout(60):
                assert "mdcserrorkind" in (await answers.get()).user_properties
            assert ready.splitlines()[1].startswith("STATUS=scopes station-1; 2 pieces of equipment; OPC UA ")
            for _ in range(3):
                await systemd.until("WATCHDOG=1")
            await gateway.stop()
            await systemd.until("STOPPING=1")
    assert systemd.reported[0].startswith("READY=1")


async def test_gateway_that_cannot_start_reports_the_reason_and_is_never_ready(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    file = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "EDGE_OPCUA__NODESETS": str(tmp_path)}
    async with listening(tmp_path) as systemd:
        async with edge_run("--settings", file, **environment) as gateway:
            assert await gateway.ended() == 2
        await systemd.until("STATUS=opcua.nodesets: ")
        with pytest.raises(TimeoutError):
            await systemd.until("READY", deadline=0.01)
    assert len(systemd.reported) == 1


async def test_all_faults_of_the_settings_are_reported_in_one_status_line(tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "EDGE_MQTT__URL": "x", "EDGE_OPCUA__SECURITY": "x"}
    async with listening(tmp_path) as systemd, edge_run(**environment) as gateway:
        assert await gateway.ended() == 2
        reported = await systemd.until("STATUS=")
    assert "\n" not in reported
    assert "mqtt.url" in reported
    assert "opcua.security" in reported


async def test_watchdog_is_fed_three_times_per_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "60000")
    reported: list[str | float] = []

    async def rest(seconds: float) -> None:
        reported.append(seconds)
        if len(reported) == 6:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await feed_watchdog(reported.append, list, rest)
    assert reported == ["WATCHDOG=1", pytest.approx(0.02)] * 3


async def test_the_watchdog_is_not_fed_while_a_critical_task_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    reported: list[str] = []
    hanging = [["timers"], ["timers"], []]

    async def rest(_: float) -> None:
        if not hanging:
            raise asyncio.CancelledError
        assert reported == []

    with pytest.raises(asyncio.CancelledError):
        await feed_watchdog(reported.append, lambda: hanging.pop(0), rest)
    assert reported == ["WATCHDOG=1"]


async def test_no_notification_is_sent_without_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("socket.socket", lambda *_: pytest.fail("notified"))
    notifier()("READY=1")
    await feed_watchdog(lambda message: pytest.fail(f"told {message}"), list)


async def test_systemd_receives_each_notification(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with listening(tmp_path) as systemd:
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        notifier()("READY=1\nSTATUS=well")
        assert await systemd.until("READY=1") == "READY=1\nSTATUS=well"
