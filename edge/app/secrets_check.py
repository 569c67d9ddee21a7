"""Finds passwords that others can read: in settings, in world-readable files, on the way to another host."""

import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from edge.app.gateway_files import is_secret, locate_files
from edge.config import Settings

_LOOPBACK = {"", "localhost", "127.0.0.1", "::1"}
_CLEARTEXT = {"mqtt", "redis", "redis+sentinel"}


def passwords_in(file: Path) -> list[str]:
    """Return the settings of a TOML file that hold a password, as `section.key`; none for an unreadable file."""
    try:
        return sorted(_passwords(tomllib.loads(file.read_text(encoding="utf-8")), ""))
    except (OSError, ValueError):
        return []


def _passwords(table: dict[str, object], section: str) -> Iterator[str]:
    for key, value in table.items():
        match value:
            case dict():
                yield from _passwords(value, f"{section}{key}.")
            case str() if key in {"password", "sentinel_password"} and value:
                yield f"{section}{key}"
            case str() if key == "url" and _url_password(value):
                yield f"{section}url"
            case _:
                pass


def _url_password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


def examine_secrets(settings: Settings, main: Path) -> Iterator[str]:
    """Yield a warning for each password or key that others can read; `main` is the main settings file."""
    sections: dict[str, Struct] = {"redis": settings.redis, "mqtt": settings.mqtt}
    sections |= {f"southbound.{name}": section for name, section in settings.southbound.items()}
    for name, section in sections.items():
        yield from _cleartext(name, section)
        for key in ("password_file", "sentinel_password_file"):
            if file := getattr(section, key, ""):
                yield from _readable_by_all(Path(file))
                if not os.access(file, os.R_OK):
                    yield f"{name}.{key}: {file}: this user may not read it; check it as root (sudo)"
    for name, path in locate_files(settings, main).existing():
        if is_secret(name) or (path.suffix == ".toml" and passwords_in(path)):
            yield from _readable_by_all(path)


def _cleartext(name: str, section: Struct) -> Iterator[str]:
    url = str(getattr(section, "url", ""))
    if not any((getattr(section, "password", ""), getattr(section, "sentinel_password", ""), _url_password(url))):
        return
    parts = urlsplit(url)
    unencrypted = parts.scheme in _CLEARTEXT or getattr(section, "security", "") == "none"
    hosts = [urlsplit(f"//{text}").hostname or "" for text in parts.netloc.rpartition("@")[2].split(",")]
    if unencrypted and any(host not in _LOOPBACK for host in hosts):
        yield f"{name}: the password goes to {', '.join(hosts)} in clear text; use an encrypted connection"


def _readable_by_all(path: Path) -> Iterator[str]:
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if mode & stat.S_IROTH:
        yield f"{path}: every user can read this secret (mode {stat.S_IMODE(mode):o}); run: chmod o-r {path}"
