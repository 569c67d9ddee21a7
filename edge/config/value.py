"""Reads one value by the annotation of its key, and reports its faults in plain words."""

import json
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}
"""Names of the TOML types in messages."""


class Secret(str):
    """A text that is hidden in logs."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the text."""
        return "'***'" if self else "''"


class Reading(Struct, frozen=True):
    """A value, None when it has the wrong type, with all its faults."""

    value: Any
    faults: tuple[str, ...] = ()


def from_toml(value: object, hint: object) -> Reading:
    """Read a value that has a type of its own."""
    try:
        return _checked(msgspec.convert(value, hint), hint)
    except msgspec.ValidationError:
        shown = repr(value) if _is_of_type(value, hint) else KINDS.get(type(value), "a date or time")
        return Reading(None, (f"expected {expected(hint)}, got {shown}",))


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
        return Reading(None, (f"expected {expected(hint)}, got {text!r}",))


def expected(hint: object) -> str:
    """Return the expected value of an annotation in words."""
    bare, extra = _bare(hint), _extra(hint)
    if schemes := extra.get("schemes"):
        return "a URL that begins with " + " or ".join(f"{scheme}:" for scheme in schemes)
    if words := extra.get("expected"):
        return str(words)
    if must_be := extra.get("must_be"):
        return f"the path of a {must_be}"
    if get_origin(bare) is Literal:
        return "one of " + ", ".join(get_args(bare))
    if get_origin(bare) is tuple:
        words = _extra(get_args(bare)[0]).get("expected", "a text")
        return f"a list with at least one entry, each {words}"
    if bare is bool:
        return KINDS[bool]
    if bare in {int, float}:
        above, least, most = _bound(hint, "gt"), _bound(hint, "ge"), _bound(hint, "le")
        words = [KINDS[bare]]
        if above is not None:
            words.append(f"above {above}")
        elif least is not None:
            words.append(f"of at least {least}")
        if most is not None:
            words.append(f"{'and' if len(words) > 1 else 'of'} at most {most}")
        return " ".join(words)
    return "a text"


def meaning(hint: object) -> str:
    """Return the description of an annotation."""
    return next(meta.description for meta in _metas(hint) if meta.description)


def _checked(value: object, hint: object) -> Reading:
    extra = _extra(hint)
    faults = tuple(_faults(value, extra))
    return Reading(Secret(value) if "secret" in extra else value, faults)


def _faults(value: object, extra: Mapping[str, Any]) -> Iterator[str]:
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


def _path_faults(path: Path, kind: Literal["file", "directory"]) -> Iterator[str]:
    try:
        is_directory = stat.S_ISDIR(path.stat().st_mode)
    except PermissionError:
        yield f"{path}: this user may not read it"
    except (OSError, ValueError):
        yield f"there is no {kind} {path}"
    else:
        if is_directory != (kind == "directory"):
            yield f"there is no {kind} {path}"


# urllib cannot split a URL with several hosts; user and password are optional.
_SENTINELS = re.compile(r"rediss?\+sentinel://([^/@]*@)?[^/@:,]+:\d{1,5}(,[^/@:,]+:\d{1,5})*/[^/]+")


def _url_faults(url: str, schemes: tuple[str, ...]) -> Iterator[str]:
    """Yield the faults of a URL; only its scheme is shown, because it may contain a password."""
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in schemes:
        known = " or ".join(f"{scheme}:" for scheme in schemes)
        yield f"expected a URL that begins with {known}" + (f", not {scheme}:" if colon else "")
        return
    if scheme.endswith("+sentinel"):
        if not _SENTINELS.fullmatch(url):
            yield f"expected {scheme}://host:port,host:port/service"
        return
    try:
        parts = urlsplit(url)
        # Port 0 cannot be connected to; a server listens on any free port.
        has_host = bool(parts.hostname) and (parts.port != 0 or scheme == "opc.tcp")
    except ValueError as error:
        yield f"not a URL: {error}"
        return
    if scheme == "unix" and not parts.path.startswith("/"):
        yield "expected the path of a socket, as in unix:///run/redis/redis.sock"
    elif scheme not in {"unix", "embedded", "serial"} and not has_host:
        yield f"expected a host, as in {scheme}://127.0.0.1"


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
