"""Hides secrets in data of others before it is kept: by the names of members and headers, and by their form."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

HIDDEN: Final = "***"

START_OF_WORD: Final = r"(?:_|-|(?-i:(?<=[a-z0-9])(?=[A-Z])))"
"""Start of a word within a name: `pin` matches in `user_pin` and `userPin`, not in `spinning`."""
_KEY: Final = r"(?:api|private|access|secret|subscription)[-_ ]?keys?(?:[-_]?id)?"
_NAME: Final = (
    rf"\b(?:[\w-]*(?:passwor[dt]|passwd|pwd|passphrase|secret|token|{_KEY}|credentials?)"
    rf"|(?:[\w-]*{START_OF_WORD})?(?:pin|pin_?code|auth|authori[sz]ation))"
)
_NAMED: Final = rf"{_NAME}[\"']?\s*[=:]\s*(?:(?:basic|bearer)\s+)?"
_SECRET_NAME: Final = re.compile(
    rf"(?i)passwor[dt]|passwd|passphrase|secret(?!ar)|credential|authori[sz]ation|{_KEY}$"
    rf"|(?:^|{START_OF_WORD}|[a-z])(?:token|pwd)s?$|(?:^|{START_OF_WORD})(?:auth|cookie|pin|pin_?code|jwt|bearer)$"
)
"""Names of members and headers whose values are secret."""
PATTERNS: Final = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), HIDDEN),
    (re.compile(r"\$argon2\w*\$[^\s\"']+"), HIDDEN),
    # Greedy, because a password may contain @; bounded, so that no text takes long to search.
    (re.compile(r"((?<![\w+.-])[\w+.-]+://)[^\s\"'<>]{0,1000}@"), rf"\1{HIDDEN}@"),
    # A header takes the rest of its line: `Digest` has several values.
    (re.compile(r"(?im)(\b(?:proxy-)?authorization:[ \t]*|\b(?:set-)?cookie:[ \t]*)[^\r\n\"']+"), rf"\1{HIDDEN}"),
    # JSON within JSON that is cut off: the quotation marks of names and values have the same backslashes.
    (re.compile(rf"(?is)({_NAME}(\\+)\"\s*:\s*\2\")(?!\2\").*?(?<!\\)(?=\2\"|\Z)"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)({_NAME}\\+\"\s*:\s*)[\w.+-]+"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)({_NAMED}\")((?:[^\"\\]|\\.)+)"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)({_NAMED}'?)([^\s\"',;)]+)"), rf"\1{HIDDEN}"),
    # A word behind `bearer` that has a digit or is long: `bearer bonds` stays.
    (re.compile(r"(?i)\b(bearer\s+)(?=[\w~+/.-]*\d|[\w~+/.-]{20})[\w~+/.-]{6,}=*"), rf"\1{HIDDEN}"),
    # JSON Web Tokens, and keys of services by their prefix.
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]{2,}(?:\.[\w-]*){0,3}"), HIDDEN),
    (re.compile(r"\b(?:[spr]k|key)[-_](?:live|test|proj|ant)[-_][\w-]{10,}|\b[spr]k-[A-Za-z0-9]{20,}"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bxox[abprs]-[\w-]{10,}"), HIDDEN),
    (re.compile(r"\b(?:gh[opsur]_|github_pat_|glpat-)\w{16,}"), HIDDEN),
)
_NAME_MEMBERS: Final = frozenset({"id", "key", "name"})
_BASIC: Final = re.compile(r"(?i)\b(basic\s+)([A-Za-z0-9+/]{4,}={0,2})")
_CONTAINER: Final = re.compile(r"\s*[{\[]")


def is_secret_name(name: str) -> bool:
    """Return whether the value of a member or header of this name is secret."""
    return _SECRET_NAME.search(name) is not None


def hide_secrets(text: str) -> str:
    """Return a text without secrets: JSON stays JSON, and what has no secret is unchanged."""
    if _CONTAINER.match(text):
        try:
            data = json.loads(text)
            hidden = hide_in_data(data)
        except (ValueError, RecursionError):
            return _hide_by_form(text)
        return text if hidden == data else json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))
    return _hide_by_form(text)


def hide_in_data(data: Any) -> Any:
    """Return data without secrets, at any depth: members and headers by their names, texts by their form."""
    match data:
        case Mapping() if _names_a_secret(data):
            return {name: HIDDEN if member and _is_value(name) else member for name, member in _members(data).items()}
        case Mapping():
            return _members(data)
        case [str(name), str() as value] if is_secret_name(name) and value:
            # A header as a pair.
            return [name, HIDDEN]
        case list() | tuple():
            return [hide_in_data(item) for item in data]
        case str():
            return hide_secrets(data)
        case bytes():
            return hide_secrets(data.decode(errors="backslashreplace"))
        case _:
            return data


def hide_in_payload(payload: bytes) -> str:
    """Return a payload as text without secrets; MessagePack is shown as JSON where it holds a map or a list."""
    try:
        return hide_secrets(payload.decode())
    except UnicodeDecodeError:
        pass
    try:
        data = msgspec.msgpack.decode(payload)
        if isinstance(data, dict | list):
            return msgspec.json.encode(hide_in_data(data)).decode()
    except (ValueError, TypeError, RecursionError):
        pass
    return _hide_by_form(payload.decode(errors="backslashreplace"))


def _names_a_secret(data: Mapping[Any, Any]) -> bool:
    """Return whether one member names what another one holds, as `ID` and `Value` of an ISA-95 parameter do."""
    return any(
        isinstance(name, str) and name.casefold() in _NAME_MEMBERS and isinstance(value, str) and is_secret_name(value)
        for name, value in data.items()
    )


def _is_value(name: Any) -> bool:
    return isinstance(name, str) and name.casefold() == "value"


def _members(data: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        name: HIDDEN if value and isinstance(name, str) and is_secret_name(name) else hide_in_data(value)
        for name, value in data.items()
    }


def _hide_by_form(text: str) -> str:
    for pattern, instead in PATTERNS:
        text = pattern.sub(instead, text)
    return _BASIC.sub(_hide_basic, text)


def _hide_basic(found: re.Match[str]) -> str:
    """Return the credentials of Basic hidden; another word behind `basic` stays."""
    try:
        is_pair = b":" in base64.b64decode(found[2], validate=True)
    except (binascii.Error, ValueError):
        is_pair = False
    return f"{found[1]}{HIDDEN}" if is_pair else found[0]
