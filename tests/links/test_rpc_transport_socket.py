"""Only the clients that the address permits can connect to the server."""

import asyncio
import dataclasses
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from edge.config import RpcSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.links.rpc_transport import connect, listen
from tests.conftest import WaitUntil
from tests.links.rpc_certificates import Authority


def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    writer.close()


async def greeting(url: str, printed: bytes = b"", **files: str) -> bytes:
    """Return what the server says to who connects, and says something itself."""
    reader, writer = await connect(url, **files)
    writer.write(printed)
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_tcp_is_served_at_the_configured_address(host: str) -> None:
    async with listen(RpcSettings(listen=f"tcp://{host}:0"), greet) as url:
        assert url.startswith(f"tcp://{host}:")
        assert await greeting(url) == b"hello"


async def test_tls_client_needs_a_certificate_of_the_authority(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    own = dataclasses.asdict(authority.issue("gateway"))
    async with listen(RpcSettings(listen="tls://127.0.0.1:0", **own), greet) as url:
        client = dataclasses.asdict(authority.issue("client"))
        assert await greeting(url, **client) == b"hello"
        stranger = dataclasses.asdict(other.issue("stranger")) | {"ca_file": str(authority.file)}
        # With TLS 1.3 who connects learns only after its handshake that it is not let in.
        with suppress(Unavailable, OSError):
            assert await greeting(url, **stranger) == b""
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await greeting(url, **client | {"ca_file": str(other.file)})
        with suppress(OSError):
            assert b"hello" not in await greeting(url.replace("tls", "tcp"), b"hello?")


async def test_unreadable_certificates_are_reported(tmp_path: Path) -> None:
    own = Authority(tmp_path / "ours").issue("gateway")
    settings = RpcSettings(
        listen="tls://127.0.0.1:0", cert_file=own.cert_file, key_file=own.ca_file, ca_file=own.ca_file
    )
    with pytest.raises(SettingsError, match=r"gateway\.pem"):
        async with listen(settings, greet):
            pass


async def test_unix_socket_has_mode_660_and_is_removed_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "rpc.sock"
    async with listen(RpcSettings(listen=f"unix://{path}"), greet) as url:
        assert url == f"unix://{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert await greeting(url) == b"hello"
        with pytest.raises(Unavailable, match="another program serves"):
            async with listen(RpcSettings(listen=f"unix://{path}"), greet):
                pass
        assert await greeting(url) == b"hello"
    assert not path.exists()


async def test_abandoned_unix_socket_is_replaced(tmp_path: Path, wait_until: WaitUntil) -> None:
    path = tmp_path / "rpc.sock"
    dead = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-c",
            f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); time.sleep(9)",
        )
    )
    await wait_until(path.exists)
    dead.kill()
    await dead.wait()
    async with listen(RpcSettings(listen=f"unix://{path}"), greet) as url:
        assert await greeting(url) == b"hello"


async def test_file_that_is_not_a_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rpc.sock"
    path.write_text("precious")
    with pytest.raises(Unavailable, match="cannot listen"):
        async with listen(RpcSettings(listen=f"unix://{path}"), greet):
            pass
    assert path.read_text() == "precious"


async def test_address_in_use_is_reported() -> None:
    async with listen(RpcSettings(listen="tcp://127.0.0.1:0"), greet) as url:
        with pytest.raises(Unavailable, match="cannot listen for MessagePack-RPC at tcp"):
            async with listen(RpcSettings(listen=url), greet):
                pass
    with pytest.raises(Unavailable, match="no connection to tcp"):
        await connect(url)


async def test_missing_socket_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no connection to unix"):
        await connect(f"unix://{tmp_path}/rpc.sock")
