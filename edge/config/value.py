"""Reads one value by the annotation of its key, and reports its faults in plain words."""

import json
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from edge.foundation.text import Text, as_text

_KINDS: Final[Mapping[type, Text]] = {
    bool: Text("true or false"),
    int: Text("a whole number"),
    float: Text("a number"),
    str: Text("a text"),
    list: Text("a list"),
    dict: Text("a table"),
}
"""Names of the TOML types in messages."""


def kind_of(value: object) -> Text:
    """Return the name of the TOML type of a value."""
    return _KINDS.get(type(value), Text("a date or time"))


class Secret(str):
    """A text that is hidden in logs."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the text."""
        return "'***'" if self else "''"


class Reading(Struct, frozen=True):
    """A value, None when it has the wrong type, with all its faults."""

    value: Any
    faults: tuple[str | Text, ...] = ()


def from_toml(value: object, hint: object) -> Reading:
    """Read a value that has a type of its own."""
    try:
        return _checked(msgspec.convert(value, hint), hint)
    except msgspec.ValidationError:
        given = repr(value) if _is_of_type(value, hint) else kind_of(value)
        return Reading(None, (Text.of("expected {expected}, got {given}", expected=expected(hint), given=given),))


def _is_of_type(value: object, hint: object) -> bool:
    """Return whether a value has the type of an annotation; a whole number is a number, too."""
    kind = _toml_type(hint)
    return isinstance(value, kind) or (kind is float and type(value) is int)


def from_text(text: str, hint: object) -> Reading:
    """Read a text of the environment; a list is JSON or separated by commas, a table is JSON."""
    try:
        raw = _PARSERS.get(_toml_type(hint), str)(text)
        return _checked(msgspec.convert(raw, hint, strict=False), hint)
    except (msgspec.ValidationError, json.JSONDecodeError):
        fault = Text.of("expected {expected}, got {given}", expected=expected(hint), given=repr(text))
        return Reading(None, (fault,))


def expected(hint: object) -> Text:
    """Return the expected value of an annotation in words."""
    bare, extra = _bare(hint), _extra(hint)
    if schemes := extra.get("schemes"):
        return _url_of(schemes)
    if words := extra.get("expected"):
        return as_text(words)
    match extra.get("must_be"):
        case "file":
            return Text("the path of a file")
        case "directory":
            return Text("the path of a directory")
        case _:
            pass
    if get_origin(bare) is Literal:
        return Text.of("one of {choices}", choices=", ".join(get_args(bare)))
    if get_origin(bare) is tuple:
        entry = as_text(_extra(get_args(bare)[0]).get("expected", _KINDS[str]))
        return Text.of("a list with at least one entry, each {entry}", entry=entry)
    if bare in {int, float}:
        return _number(hint, _KINDS[bare])
    return _KINDS[bool if bare is bool else str]


def _number(hint: object, kind: Text) -> Text:
    above, least, most = _bound(hint, "gt"), _bound(hint, "ge"), _bound(hint, "le")
    match above, least, most:
        case None, None, None:
            return kind
        case None, None, _:
            return Text.of("{kind} of at most {most}", kind=kind, most=most)
        case None, _, None:
            return Text.of("{kind} of at least {least}", kind=kind, least=least)
        case None, _, _:
            return Text.of("{kind} of at least {least} and at most {most}", kind=kind, least=least, most=most)
        case _, _, None:
            return Text.of("{kind} above {above}", kind=kind, above=above)
        case _:
            return Text.of("{kind} above {above} and at most {most}", kind=kind, above=above, most=most)


def _url_of(schemes: Sequence[str]) -> Text:
    first, *others = (Text(f"{scheme}:") for scheme in schemes)
    choice = reduce(lambda before, scheme: Text.of("{before} or {scheme}", before=before, scheme=scheme), others, first)
    return Text.of("a URL that begins with {schemes}", schemes=choice)


def meaning(hint: object) -> str:
    """Return the description of an annotation."""
    return next(meta.description for meta in _metas(hint) if meta.description)


def _checked(value: object, hint: object) -> Reading:
    extra = _extra(hint)
    faults = tuple(_faults(value, extra))
    return Reading(Secret(value) if "secret" in extra else value, faults)


def _faults(value: object, extra: Mapping[str, Any]) -> Iterator[str | Text]:
    """Yield the faults of a value of the right type; an empty text means "not set"."""
    match value, extra:
        case "", _:
            pass
        case str(url), {"schemes": schemes}:
            yield from _url_faults(url, schemes)
        case str(path), {"must_be": "file" | "directory" as kind}:
            yield from _path_faults(Path(path), kind)
        case _:
            pass


def _path_faults(path: Path, kind: Literal["file", "directory"]) -> Iterator[str | Text]:
    try:
        is_directory = stat.S_ISDIR(path.stat().st_mode)
    except PermissionError:
        yield Text.of("{path}: this user may not read it", path=path)
    except (OSError, ValueError):
        yield _missing(path, kind)
    else:
        if is_directory != (kind == "directory"):
            yield _missing(path, kind)


def _missing(path: Path, kind: Literal["file", "directory"]) -> Text:
    if kind == "file":
        return Text.of("there is no file {file}", file=path)
    return Text.of("there is no directory {directory}", directory=path)


# urllib cannot split a URL with several hosts; user and password are optional.
_SENTINELS = re.compile(r"rediss?\+sentinel://([^/@]*@)?[^/@:,]+:\d{1,5}(,[^/@:,]+:\d{1,5})*/[^/]+")


def _url_faults(url: str, schemes: tuple[str, ...]) -> Iterator[str | Text]:
    """Yield the faults of a URL; only its scheme is shown, because it may contain a password."""
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in schemes:
        if colon:
            yield Text.of("expected {expected}, not {scheme}:", expected=_url_of(schemes), scheme=scheme)
        else:
            yield Text.of("expected {expected}", expected=_url_of(schemes))
        return
    if scheme.endswith("+sentinel"):
        if _SENTINELS.fullmatch(url):
            hosts = url.partition("//")[2].rpartition("@")[2].partition("/")[0]
            yield from chain.from_iterable(_host_faults(host.rpartition(":")[0]) for host in hosts.split(","))
        else:
            yield Text.of("expected {scheme}://host:port,host:port/service", scheme=scheme)
        return
    try:
        parts = urlsplit(url)
        # Port 0 cannot be connected to; a server listens on any free port.
        has_host = bool(parts.hostname) and (parts.port != 0 or scheme == "opc.tcp")
    except ValueError as error:
        yield Text.of("not a URL: {reason}", reason=error)
        return
    if scheme == "unix" and not parts.path.startswith("/"):
        yield "expected the path of a socket, as in unix:///run/redis/redis.sock"
    elif scheme not in {"unix", "embedded", "serial"} and not has_host:
        yield Text.of("expected a host, as in {scheme}://127.0.0.1", scheme=scheme)
    yield from _host_faults(parts.hostname or "")


def _host_faults(host: str) -> Iterator[Text]:
    """Yield the fault of a name that no resolver takes: a connection to it would end with a UnicodeError."""
    try:
        host.encode("idna")
    except UnicodeError:
        yield Text.of("{host!r} cannot be a host name: between two dots are 1 to 63 characters", host=host)


def _parse_list(text: str) -> object:
    return json.loads(text) if text.lstrip().startswith("[") else [part.strip() for part in text.split(",")]


_PARSERS: Mapping[type, Callable[[str], object]] = {list: _parse_list, dict: json.loads}


def _metas(hint: object) -> list[msgspec.Meta]:
    return [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]


def _extra(hint: object) -> dict[str, Any]:
    return {name: value for meta in _metas(hint) for name, value in (meta.extra or {}).items()}


def _bound(hint: object, bound: Literal["gt", "ge", "le"]) -> float | None:
    return next((value for meta in _metas(hint) if (value := getattr(meta, bound)) is not None), None)


def _bare(hint: object) -> Any:
    return getattr(hint, "__origin__", hint) if _metas(hint) else hint


def _toml_type(hint: object) -> type:
    """Return the TOML type of an annotation."""
    bare = _bare(hint)
    named: type = {tuple: list, Mapping: dict, Literal: str}.get(get_origin(bare), bare)
    return named
