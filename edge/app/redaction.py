"""Removes known secrets, and text that looks like a secret, from data that is passed on, such as refused messages."""

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct

from edge.config import Settings
from edge.config.value import Secret
from edge.foundation.text import ENGLISH, stated_in
from edge.model.instant import Instant, rfc3339
from edge.model.secret_text import HIDDEN, PATTERNS, START_OF_WORD
from edge.store.dead_letters import RefusedMessage

Redact = Callable[[str], str]

_SHORT = 4
"""Shorter secrets are hidden as whole words only: they would match within other words."""


_SENSITIVE_NAMES = re.compile(
    r"(?i)passw|pwd|passphrase|secret|token|api_?key|private|credential|auth(?!or(?!i[sz]ation))|pin_?code"
    r"|serial|instance_?uri|user|login|operator|personnel|employee|host"
    rf"|(?:ip|mac)_?addr|(?:^|{START_OF_WORD})(?:pin|sn|vin|ip|mac)$"
)
"""Names of members whose values are secret, a serial number, a person or a host."""
_ADDRESSES = (
    # The namespaces of the OPC Foundation are not addresses of hosts.
    (re.compile(r"((?<![\w+.-])[\w+.-]+://)(?!(?:www\.)?opcfoundation\.org/)[^\s/\"'<>]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"), HIDDEN),
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"), HIDDEN),
    # A VIN (ISO 3779), which may be an argument without a name.
    (re.compile(r"(?<![\w-])(?=\w*\d)[A-HJ-NPR-Z0-9]{17}(?![\w-])"), HIDDEN),
    # IPv6 and MAC; a time of day has fewer colons.
    (re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}(?![\w:])"), HIDDEN),
)


def redactor(secrets: Iterable[str], names: Iterable[str] = ()) -> Redact:
    """Return a function that hides these secrets in every spelling, text that looks secret, and these names."""
    spellings = {spelled for secret in secrets if secret.strip() for spelled in _spellings(secret)}
    patterns = [
        re.compile(rf"(?<!\w){re.escape(spelling)}(?!\w)" if len(spelling) < _SHORT else re.escape(spelling))
        for spelling in sorted(spellings, key=len, reverse=True)
    ]
    patterns += [re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])") for name in names]

    def redact(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(HIDDEN, text)
        for pattern, instead in PATTERNS:
            text = pattern.sub(instead, text)
        return text

    return redact


def redact_data(data: Any, redact: Redact) -> Any:
    """Return JSON data without secrets, serial numbers, persons and hosts.

    They are found by the names of members, and in texts by `redact` and by the form of addresses.
    """
    match data:
        case {"Name": str(name), "EntityId": str() | int()} if _SENSITIVE_NAMES.search(name):
            # An identifier of OPC 40450-1: its name is a value.
            return _members(data, redact) | {"EntityId": HIDDEN}
        case dict():
            return _members(data, redact)
        case list():
            return [redact_data(value, redact) for value in data]
        case str():
            for pattern, instead in _ADDRESSES:
                data = pattern.sub(instead, data)
            return redact(data)
        case _:
            return data


def _members(data: dict[str, Any], redact: Redact) -> dict[str, Any]:
    return {
        name: HIDDEN if _SENSITIVE_NAMES.search(name) and value else redact_data(value, redact)
        for name, value in data.items()
    }


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield unquote(secret)
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]


def secrets_of(settings: Settings | None, main: Path, environ: Mapping[str, str]) -> set[str]:
    """Find every secret of a gateway, also when its settings are invalid."""
    found = {text for name, text in environ.items() if name.startswith("EDGE_") and "PASSWORD" in name}
    tables: list[object] = [] if settings is None else [msgspec.structs.asdict(settings)]
    for file in (main, *sorted(main.parent.glob("conf.d/*"))):
        try:
            tables.append(tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            # Absent or invalid: text that looks secret is hidden anyway.
            continue
    for table in tables:
        found.update(_secrets_in("", table))
    if os.access(main.parent / "passwords", os.R_OK | os.X_OK):
        for file in (main.parent / "passwords").glob("*"):
            # A folder or an unreadable file: no secret that could be shown.
            with contextlib.suppress(OSError):
                found.add(file.read_text(errors="replace").strip())
    return found - {""}


def _secrets_in(name: str, value: object) -> Iterator[str]:
    match value:
        case Secret():
            yield str(value)
        case str() if "://" in value:
            if secret := _password_in(value):
                yield secret
        case dict():
            for key, item in value.items():
                yield from _secrets_in(key, item)
        case msgspec.Struct():
            yield from _secrets_in(name, msgspec.structs.asdict(value))
        case _ if "password" in name.lower() and not name.endswith("_file"):
            yield str(value)


def _password_in(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return url.rpartition("@")[0].rpartition(":")[2]


def redact_settings(value: object) -> object:
    """Return settings as data; a secret shows only whether it is set."""
    match value:
        case Secret():
            return HIDDEN if value else ""
        case msgspec.Struct():
            return {key: redact_settings(element) for key, element in msgspec.structs.asdict(value).items()}
        case dict():
            return {key: redact_settings(element) for key, element in value.items()}
        case tuple():
            return [redact_settings(element) for element in value]
        case _:
            return value


class PublicRefused(Struct, frozen=True, kw_only=True):
    """A refused message or a declined call: its topic or source as `way`, and the first 4 KiB of its payload."""

    at: Instant | None
    way: str
    type: str | None
    id: str | None
    kind: str
    reason: str
    payload: str


def without_secrets(message: RefusedMessage, redact: Redact) -> RefusedMessage:
    """Return a message without secrets: a sender may have sent its password where it does not belong."""
    payload = redact(message.payload.decode()).encode()
    redacted = redact(str(message.reason))
    reason = message.reason if redacted == str(message.reason) else redacted
    return msgspec.structs.replace(message, reason=reason, payload=payload)


def public_refused(message: RefusedMessage, language: str = ENGLISH) -> PublicRefused:
    """Return the public form of a message."""
    return PublicRefused(
        at=rfc3339(message.at),
        way=message.way,
        type=message.event_type or None,
        id=message.event_id or None,
        kind=message.kind,
        reason=stated_in(message.reason, language),
        payload=message.payload.decode(),
    )
