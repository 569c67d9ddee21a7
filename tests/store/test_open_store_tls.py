"""A store over TLS with an ACL user: opened by its URL, trusted by its certificate, served again after a loss."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError
from edge.store.commit import Committed, operation
from edge.store.open_store import open_store
from tests.store.servers import Server, own_server, until_served
from tests.store.tls import TlsFiles, tls_server, write_certificate

_ACL = ("--user", "station", "on", ">secret", "~*", "&*", "+@all", "--user", "default", "off")


@contextlib.asynccontextmanager
async def _served(directory: Path) -> AsyncIterator[tuple[Server, TlsFiles, int]]:
    """Run a server that only the user `station` may use, behind TLS."""
    files = write_certificate(directory)
    async with own_server(directory, *_ACL) as server:

        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                server_reader, server_writer = await asyncio.open_unix_connection(server.url[7:])
                await asyncio.gather(_copy(reader, server_writer), _copy(server_reader, writer))

        async with tls_server(files, forward) as port:
            yield server, files, port


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()


async def test_store_over_tls_reconnects_an_acl_user_to_a_killed_server(tmp_path: Path, unique: str) -> None:
    async with _served(tmp_path) as (server, files, port):
        url = f"rediss://station:secret@127.0.0.1:{port}/2?ssl_ca_certs={files.certificate}&client_name=gateway"
        async with open_store(RedisSettings(url=url, prefix=unique, durability="any"), "edge") as store:
            counted = await asyncio.gather(*(store.execute("INCR", "n") for _ in range(200)))
            assert counted == list(range(1, 201))
            info = await store.execute("CLIENT INFO")
            shown = info if isinstance(info, dict) else dict(text.split("=", 1) for text in str(info).split())
            assert (shown["user"], str(shown["db"]), shown["name"], str(shown["resp"])) == (
                "station",
                "2",
                "gateway",
                "3",
            )
            await server.kill()
            await server.start()
            await until_served(store)
            assert await store.commit(operation("SET", "after", "1")) == Committed()
            assert await store.execute("GET", "after") == "1"


@pytest.mark.parametrize(
    ("login", "trusted"), [("station:wrong@", True), ("station:secret@", False)], ids=["wrong password", "untrusted"]
)
async def test_store_over_tls_with_invalid_credentials_is_refused(tmp_path: Path, login: str, *, trusted: bool) -> None:
    async with _served(tmp_path) as (_, files, port):
        query = f"?ssl_ca_certs={files.certificate}" if trusted else ""
        opening = open_store(RedisSettings(url=f"rediss://{login}127.0.0.1:{port}/0{query}"), "edge")
        with pytest.raises(EdgeError, match="password" if trusted else "certificate"):
            await opening.__aenter__()
