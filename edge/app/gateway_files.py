"""Locates the files of a gateway: settings, certificates, users; finds passwords in them that others can read."""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_der_private_key
from msgspec import Struct

from edge.app.feature import FileFolder
from edge.app.features import folders_of
from edge.config import Settings
from edge.opcua.application_certificate import SUFFIXES


class GatewayFiles(Struct, frozen=True):
    """Paths of the files of a gateway: single files by their names in a backup, and folders."""

    files: Mapping[str, Path]
    folders: Mapping[str, FileFolder]

    def of(self, name: str) -> Path | None:
        """Return the path of a member of a backup; None when it has none."""
        folder, _, last = name.rpartition("/")
        if folder in self.folders:
            return self.folders[folder].path / last
        return self.files.get(name)

    def existing(self) -> Iterator[tuple[str, Path]]:
        """Yield every existing file with its name in a backup."""
        for name, path in self.files.items():
            if _is_file(path):
                yield name, path
        for name, folder in self.folders.items():
            for path in sorted(folder.path.glob(folder.pattern)):
                if not _is_file(path) or path.name.startswith(".") or path.name.endswith(REPLACED_SUFFIX):
                    continue
                if not name.endswith("trusted") or _is_public(path):
                    yield f"{name}/{path.name}", path


def _is_file(path: Path) -> bool:
    """Return whether a file exists; a file without access counts as existing, and reading it raises the error."""
    try:
        return path.is_file()
    except PermissionError:
        return True


def _is_public(path: Path) -> bool:
    """Return whether a file is a certificate or a revocation list, and holds no private key."""
    return path.suffix.lower() in {*SUFFIXES, ".crl"} and not _holds_a_key(path.read_bytes())


def _holds_a_key(content: bytes) -> bool:
    if b"PRIVATE KEY" in content:
        return True
    try:
        load_der_private_key(content, None)
    except TypeError:  # a key with a password
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


REPLACED_SUFFIX = ".before-restore"
"""Ending of a file that was replaced by a restore."""


def locate_files(settings: Settings, main: Path) -> GatewayFiles:
    """Locate the files of these settings; `main` is the main settings file."""
    pki = Path(settings.opcua.pki)
    files = {
        "settings/edge.toml": main,
        "opcua/users": Path(settings.users_file),
        "opcua/own.der": pki / "own.der",
        "opcua/own.pem": pki / "own.pem",
    }
    files |= {f"tls/{name}": path for name, path in settings.tls_files.items()}
    folders = {
        "settings/conf.d": FileFolder(main.parent / "conf.d", "*.toml"),
        "settings/passwords": FileFolder(main.parent / "passwords"),
        "opcua/trusted": FileFolder(Path(settings.opcua.trusted)),
        "opcua/issuers.trusted": FileFolder(Path(settings.opcua.trusted) / "issuers"),
        **folders_of(settings),
    }
    if settings.opcua.trusted_users:
        users = Path(settings.opcua.trusted_users)
        folders |= {
            "opcua/users.trusted": FileFolder(users),
            "opcua/user_issuers.trusted": FileFolder(users / "issuers"),
        }
    folders |= {
        f"tls/southbound.{name}.trusted": FileFolder(Path(directory))
        for name, section in settings.southbound.items()
        if (directory := getattr(section, "trusted", ""))
    }
    return GatewayFiles(files, folders)


def is_secret(name: str) -> bool:
    """Return whether a member is a private key or a password."""
    return name == "opcua/own.pem" or name.startswith("settings/passwords/") or name.endswith(".key_file")


def environment_variable(name: str) -> str:
    """Return the environment variable of the setting of `tls/<section>.<key>`."""
    section, _, key = name.removeprefix("tls/").rpartition(".")
    return f"EDGE_{section.replace('.', '__', 1).replace('-', '_')}__{key}".upper()


def is_below(path: Path, directory: Path) -> bool:
    """Return whether a path is below a directory, with links and dots resolved."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))


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
    for name, section in (*sections.items(), *settings.sections.items()):
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
    urls = (str(getattr(section, "url", "")), *getattr(section, "further_urls", ()))
    passwords = (getattr(section, "password", ""), getattr(section, "sentinel_password", ""), *map(_url_password, urls))
    if not any(passwords):
        return
    parts = [urlsplit(url) for url in urls]
    unencrypted = any(part.scheme in _CLEARTEXT for part in parts) or getattr(section, "security", "") == "none"
    named = [text for part in parts for text in part.netloc.rpartition("@")[2].split(",")]
    hosts = [urlsplit(f"//{text}").hostname or "" for text in named]
    if unencrypted and any(host not in _LOOPBACK for host in hosts):
        yield f"{name}: the password goes to {', '.join(hosts)} in clear text; use an encrypted connection"


def _readable_by_all(path: Path) -> Iterator[str]:
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if mode & stat.S_IROTH:
        yield f"{path}: every user can read this secret (mode {stat.S_IMODE(mode):o}); run: chmod o-r {path}"
