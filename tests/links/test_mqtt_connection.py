import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from msgspec.structs import replace
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from edge.config import MqttSettings
from edge.foundation.errors import Refused, Unavailable
from edge.links.cloudevent_mqtt import Message
from edge.links.local_broker import find_mosquitto
from edge.links.mqtt_broker import Broker, broker_of
from edge.links.mqtt_connection import NotReached, connect
from tests.local_broker import OwnBroker, open_broker
from tests.plain_mqtt import plain_client

_CONNACK = bytes.fromhex("20 03 00 00 00")
_DISCONNECT_SESSION_TAKEN_OVER = bytes.fromhex("e0 01 8e")


def _local(broker: OwnBroker, client_id: str) -> Broker:
    return Broker("127.0.0.1", broker.port, client_id, session_expiry=0)


async def test_publish_refused_by_the_broker_raises_unavailable(tmp_path: Path, unique: str) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite allowed/#\n")
    rules.chmod(0o600)
    async with open_broker(f"acl_file {rules}") as broker, connect(_local(broker, unique)) as connection:
        await connection.publish(Message("allowed/a"), 1)
        with pytest.raises(Unavailable, match=r"refused a publish to 'forbidden/a': Not authorized"):
            await connection.publish(Message("forbidden/a"), 1)


async def test_oversized_packet_is_refused_and_keeps_the_connection(unique: str) -> None:
    async with open_broker("max_packet_size 1000") as broker, connect(_local(broker, unique)) as connection:
        for too_many in (1000, 100_000):
            with pytest.raises(Refused, match="more than the MQTT broker takes: 1000"):
                await connection.publish(Message(unique, bytes(too_many)), 1)
        await connection.publish(Message(unique, bytes(900), content_type="application/json"), 1)


async def test_message_above_the_packet_limit_is_not_received(broker: OwnBroker, unique: str) -> None:
    narrow = replace(_local(broker, f"{unique}-narrow"), largest_packet=1000)
    async with connect(narrow) as connection, connect(_local(broker, unique)) as other:
        await connection.subscribe(unique)
        for size in (2000, 500):
            await other.publish(Message(unique, bytes(size)), 1)
        async with asyncio.timeout(60):
            first = await anext(connection.messages())
        assert len(first.message.payload) == 500


async def test_wrong_password_is_reported_with_the_reason_of_the_broker(tmp_path: Path, unique: str) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text("")
    passwords.chmod(0o600)
    async with open_broker("allow_anonymous false", f"password_file {passwords}") as broker:
        with pytest.raises(Unavailable, match="Not authorized"):
            async with connect(_local(broker, unique)):
                pytest.fail("the broker knows no such user")


async def test_a_second_connection_of_the_same_client_ends_the_first(broker: OwnBroker, unique: str) -> None:
    async with connect(_local(broker, unique)) as first, connect(_local(broker, unique)):
        with pytest.raises(Unavailable, match="is gone"):
            await anext(first.messages())
        assert not first.acknowledge(1)


@asynccontextmanager
async def _broker_that_disconnects(*, after: bytes) -> AsyncIterator[Broker]:
    """Serve one client: accept its connection and send DISCONNECT once it sent `after`, or at once."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"client")
        writer.write(_CONNACK)
        if after:
            await reader.readuntil(after)
        writer.write(_DISCONNECT_SESSION_TAKEN_OVER)
        await writer.drain()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Broker("127.0.0.1", server.sockets[0].getsockname()[1], "client", session_expiry=0)


async def test_acknowledge_fails_after_the_broker_sent_disconnect() -> None:
    """After this packet paho has closed the socket and still reports a connection."""
    async with _broker_that_disconnects(after=b"go") as broker, connect(broker) as connection:
        await connection.publish(Message("go"), 0)
        with pytest.raises(Unavailable, match=r"is gone: .*Session taken over"):
            await anext(connection.messages())
        assert not connection.acknowledge(1)


async def test_disconnect_received_with_connack_is_detected() -> None:
    """Otherwise a client without subscriptions would wait for ever on a connection that is closed."""
    async with _broker_that_disconnects(after=b"") as broker:
        with pytest.raises(Unavailable, match="accepted the connection and ended it at once"):
            async with connect(broker):
                pytest.fail("the connection is closed")


async def test_hundred_concurrent_publishes_are_confirmed(broker: OwnBroker, unique: str) -> None:
    async with connect(_local(broker, unique)) as connection, asyncio.TaskGroup() as tasks:
        for number in range(100):
            tasks.create_task(connection.publish(Message(f"{unique}/{number}", b"x" * 10_000), 1))


async def test_unusual_valid_text_does_not_end_the_connection(broker: OwnBroker, unique: str) -> None:
    odd = "\u200b key \u00e9\U0001f527"
    async with connect(_local(broker, unique)) as connection:
        await connection.subscribe(unique)
        await connection.publish(Message(unique, user_properties={odd: odd}), 1)
        incoming = await anext(connection.messages())
    assert incoming.message.user_properties == {odd: odd}


async def test_last_of_duplicate_user_properties_is_used(broker: OwnBroker, unique: str) -> None:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.UserProperty = [("id", "1"), ("type", "t"), ("id", "2")]
    async with connect(_local(broker, unique)) as connection:
        await connection.subscribe(unique)
        with plain_client(broker.port) as client:
            client.publish(unique, properties=properties)
            incoming = await anext(connection.messages())
    assert incoming.message.user_properties == {"id": "2", "type": "t"}


# paho leaves the socket of a failed TLS handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <ssl:ResourceWarning")
async def test_tls_connects_to_a_broker_with_a_trusted_certificate(tmp_path: Path, unique: str) -> None:
    certificate, key, other = tmp_path / "broker.pem", tmp_path / "broker.key", tmp_path / "other.pem"
    _write_certificate(certificate, key)
    _write_certificate(other, tmp_path / "other.key")
    async with open_broker(f"certfile {certificate}", f"keyfile {key}") as local:
        url = f"mqtts://127.0.0.1:{local.port}"
        async with connect(broker_of(MqttSettings(url=url, ca_file=str(certificate)), unique, 0)) as connection:
            await connection.publish(Message(unique), 1)
        with pytest.raises(Unavailable, match="certificate verify failed"):
            async with connect(broker_of(MqttSettings(url=url, ca_file=str(other)), unique, 0)):
                pytest.fail("we do not know this broker")
    gc.collect()


def _write_certificate(certificate: Path, key: Path) -> None:
    """Write a self-signed certificate for the loopback address, valid for a day."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    private = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(built.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


async def test_control_characters_in_text_do_not_end_the_connection(broker: OwnBroker, unique: str) -> None:
    bad = "".join(map(chr, (*range(32), 0x7F, 0x85, 0xD800, 0xFDD0, 0xFFFE, 0x1FFFF)))
    message = Message(unique, content_type=f"text{bad}", user_properties={f"a{bad}": f"two\nlines{bad}"})
    async with connect(_local(broker, unique)) as connection:
        await connection.subscribe(unique)
        await connection.publish(message, 1)
        incoming = await anext(connection.messages())
    blank = " " * len(bad)
    assert incoming.message.content_type == f"text{blank}"
    assert incoming.message.user_properties == {f"a{blank}": f"two lines{blank}"}


async def test_too_long_text_is_truncated(broker: OwnBroker, unique: str) -> None:
    async with connect(_local(broker, unique)) as connection:
        await connection.publish(Message(unique, user_properties={"a": "\U0001f527" * 70_000}), 1)


@pytest.mark.parametrize("topic", ["", "a/+", "a/#", "a\nb", "a\x00", "a\ud800", "é" * 40_000])
async def test_invalid_topic_is_refused(broker: OwnBroker, unique: str, topic: str) -> None:
    async with connect(_local(broker, unique)) as connection:
        with pytest.raises(Refused):
            await connection.publish(Message(topic), 1)
        with pytest.raises(Refused):
            await connection.publish(Message(unique, response_topic=topic), 1)
        await connection.publish(Message(unique), 1)


async def test_publish_returns_whether_a_subscriber_exists(broker: OwnBroker, unique: str) -> None:
    async with connect(_local(broker, unique)) as connection:
        assert await connection.publish(Message(unique), 1) is False
        await connection.subscribe(unique)
        assert await connection.publish(Message(unique), 1) is True


async def test_a_message_with_a_forbidden_string_does_not_end_the_connection(broker: OwnBroker, unique: str) -> None:
    async with connect(_local(broker, unique)) as connection:
        await connection.subscribe(unique)
        connection.stream.data_received(b"\x32\x0a\x00\x01t\x00\x07\x04\x03\x00\x01\xff")
        await connection.publish(Message(unique, b"next"), 1)
        async with asyncio.timeout(60):
            assert (await anext(connection.messages())).message.payload == b"next"


async def test_a_malformed_packet_ends_the_connection_with_its_reason(broker: OwnBroker, unique: str) -> None:
    async with connect(_local(broker, unique)) as connection:
        connection.stream.data_received(b"\x32\x07\x00\x01t\x00\x07\x01\x7f")
        with pytest.raises(Unavailable, match="is gone: it sent a malformed message: property 0x7f"):
            await anext(connection.messages())


async def test_unreachable_broker_raises_not_reached(unique: str) -> None:
    async with open_broker() as broker:
        await broker.stop()
        with pytest.raises(NotReached, match="Connection refused"):
            async with connect(_local(broker, unique)):
                raise AssertionError


async def test_advice_for_a_broker_with_a_damaged_database_names_the_page(tmp_path: Path, unique: str) -> None:
    """`edge doctor` asked whether the broker runs; the broker ends at its start and says why in its journal only."""
    options = ("persistence true", f"persistence_location {tmp_path}/")
    (tmp_path / "mosquitto.db").write_bytes(b"damaged" * 100)
    async with open_broker() as broker:
        await broker.stop()
        configuration = tmp_path / "mosquitto.conf"
        configuration.write_text("\n".join((f"listener {broker.port} 127.0.0.1", "user root", *options, "")))
        process = await asyncio.create_subprocess_exec(
            find_mosquitto(), "-c", str(configuration), stderr=asyncio.subprocess.PIPE
        )
        _, log = await process.communicate()
        with pytest.raises(NotReached) as caught:
            async with connect(_local(broker, unique)):
                raise AssertionError
    for text in ("Couldn't open database", "docs/how-to/store-repair.md"):
        assert text in caught.value.advice
    assert b"Couldn't open database" in log


async def test_will_is_published_at_a_regular_end_if_configured(broker: OwnBroker, unique: str) -> None:
    dying = replace(_local(broker, f"{unique}-a"), will=Message(unique, b"dead"), will_always=True, clean_start=True)
    async with connect(_local(broker, unique)) as connection, asyncio.timeout(60):
        await connection.subscribe(unique)
        async with connect(dying):
            pass
        received = await anext(connection.messages())
    assert received.message.payload == b"dead"


async def test_clean_start_discards_the_stored_session(broker: OwnBroker, unique: str) -> None:
    kept = replace(_local(broker, unique), session_expiry=60)
    for clean_start, expected in ((False, False), (False, True), (True, False)):
        async with connect(replace(kept, clean_start=clean_start)) as connection:
            assert connection.has_session is expected


async def test_wait_for_a_place_is_part_of_the_time_of_a_publish(unique: str) -> None:
    async with open_broker() as broker, connect(replace(_local(broker, unique), answer_s=2.0)) as connection:

        async def failed_at() -> float:
            with pytest.raises(Unavailable, match="did not confirm"):
                await connection.publish(Message(unique), 1)
            return asyncio.get_running_loop().time()

        broker.freeze()
        # Of these most wait for a place, which becomes free when the first have failed.
        ends = await asyncio.gather(*(failed_at() for _ in range(150)))
        assert max(ends) - min(ends) < 1.0
