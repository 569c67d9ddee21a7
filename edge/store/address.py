"""Parses the address of the store: one server, or the sentinels that name the present primary."""

import re
import ssl
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from msgspec import Struct

from edge.config import RedisSettings, password_of
from edge.foundation.errors import SettingsError
from edge.store.connection import Endpoint


class SentinelAddress(Struct, frozen=True):
    """The sentinels of an address, each as an endpoint, and the service whose primary they name.

    `server` is the primary without its host: login, TLS and database.
    """

    service: str
    sentinels: tuple[Endpoint, ...]
    server: Endpoint


def is_sentinel(url: str) -> bool:
    """Return whether an address names sentinels."""
    return url.startswith(("redis+sentinel:", "rediss+sentinel:"))


def sentinel_address_of(settings: RedisSettings) -> SentinelAddress:
    """Return the sentinels of `redis[s]+sentinel://[user:password@]host:port[,host:port…]/service`.

    The login of the address is that of the servers; the sentinels have one of their own in the settings.
    Raises SettingsError for certificates that cannot be read.
    """
    parts = urlsplit(settings.url)
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = map(unquote, login.partition(":"))
    tls = _tls_context(settings, {}) if parts.scheme.startswith("rediss") else None
    server = Endpoint(tls=tls, username=username, password=password_of(settings) or password)
    own = settings.sentinel_login
    sentinel = Endpoint(tls=tls, username=own.username, password=password_of(own))
    places = (text.rpartition(":") for text in hosts.split(","))
    sentinels = tuple(msgspec.structs.replace(sentinel, host=host, port=int(port)) for host, _, port in places)
    return SentinelAddress(unquote(parts.path.strip("/")), sentinels, server)


def endpoint_of(settings: RedisSettings, url: str) -> Endpoint:
    """Return where an address of a Unix socket, TCP or TLS leads; a password of the settings precedes its own.

    The query may name `db`, `username`, `password` and `client_name`, and for TLS `ssl_ca_certs`, `ssl_certfile` and
    `ssl_keyfile`, as with redis-py; other names have no effect. Raises SettingsError for certificates that cannot be
    read.
    """
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    number = query.get("db", "" if parts.scheme == "unix" else unquote(parts.path).strip("/"))
    return Endpoint(
        path=unquote(parts.path) if parts.scheme == "unix" else "",
        host=unquote(parts.hostname or "localhost"),
        port=parts.port or 6379,
        tls=_tls_context(settings, query) if parts.scheme == "rediss" else None,
        username=unquote(parts.username or "") or query.get("username", ""),
        password=password_of(settings) or unquote(parts.password or "") or query.get("password", ""),
        database=int(number) if number.isdecimal() else 0,
        client_name=query.get("client_name", ""),
    )


def _tls_context(settings: RedisSettings, query: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a client that verifies the server."""
    authority = settings.ca_file or query.get("ssl_ca_certs")
    certificate = settings.cert_file or query.get("ssl_certfile")
    try:
        context = ssl.create_default_context(cafile=authority or None)
        if certificate:
            context.load_cert_chain(certificate, settings.key_file or query.get("ssl_keyfile"))
    except (OSError, ValueError) as error:
        files = ", ".join(filter(None, (authority, certificate)))
        raise SettingsError(
            [f"[redis] a certificate cannot be read: {error} ({files})"], "Correct ca_file, cert_file and key_file."
        ) from error
    return context


def shown(url: str) -> str:
    """Return an address without its login, for messages."""
    return re.sub(r"//[^/]*@", "//", url)
