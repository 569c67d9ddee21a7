"""Writes the settings of a site: the file that `edge init` makes of the answers of a person."""

import asyncio
import json
import os
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import get_type_hints
from urllib.parse import urlsplit

from msgspec import Struct

from edge.app.advice import starts_with_gateway
from edge.app.features import equipment_settings, gateway_settings
from edge.config import (
    Settings,
)
from edge.config.value import from_toml
from edge.features.admin.broker_check import brokers, examine_broker
from edge.features.admin.doctor import equipment_examinations, findings_of
from edge.features.admin.store_check import examine_store
from edge.foundation.files import make_directory, write_atomically
from edge.foundation.text import Text
from edge.model.finding import HealthFinding, ok
from edge.uaserver.certificates import own_hosts, renew

FILE = Path("conf.d", "50-site.toml")
"""Below the folder of the settings."""

_PASSWORD = Path("passwords", "mqtt")
_CREDENTIAL = "password_mqtt"
"""The unit of the package passes the files of `passwords/` as credentials of this form (systemd.exec(5))."""
_KINDS = ("mqtt", "ijt", "vision", "openprotocol")
_CLIENT = Path("opcua-client")
_DEVICES = Path("opcua-devices")
_MAIN = "# Settings of this gateway; those of its site are in conf.d/. `man edge.toml` explains every key.\n"
_READABLE = 0o640
_SECRET = 0o600
_FOLDER = 0o750


class SiteEquipment(Struct, frozen=True):
    """One piece of equipment: its section, where it is, and the `type_id`s of the actions it takes.

    `address` is `mqtt` for the broker of the gateway, the URL of another broker, `ijt` or `vision` with the URL of an
    OPC UA server, as in `ijt+opc.tcp://10.0.0.7:4840`, or `openprotocol+tcp://10.0.0.8:4545`.
    """

    name: str
    address: str
    type_ids: tuple[str, ...]

    @property
    def opcua_kind(self) -> str:
        """Return the kind of equipment that is an OPC UA server; "" for equipment at a broker."""
        kind, separator, url = self.address.partition("+")
        return kind if separator and url.startswith("opc.tcp:") else ""

    @property
    def openprotocol_url(self) -> str:
        """Return the URL of a controller with Open Protocol; "" for other equipment."""
        kind, _, url = self.address.partition("+")
        return url if kind == "openprotocol" and url.startswith("tcp:") else ""


class Site(Struct, frozen=True):
    """What is special to the gateway of one station. An empty `broker` switches MQTT off."""

    name: str
    scopes: tuple[str, ...]
    broker: str
    username: str = ""
    password: str = ""
    equipment: tuple[SiteEquipment, ...] = ()


def is_address(text: str) -> bool:
    """Return whether a text can be the address of equipment."""
    kind, _, url = text.partition("+") if "+" in text.partition(":")[0] else ("mqtt", "", text)
    known = {name: section for name, section in equipment_settings().items() if name in _KINDS}
    if text == "mqtt" or kind not in known or not url:
        return text == "mqtt"
    section = pkgutil.resolve_name(known[kind])
    return not from_toml(url, get_type_hints(section, include_extras=True)["url"]).faults


def site_toml(site: Site, directory: Path) -> str:
    """Return the settings of a site as TOML; `directory` is the folder of the settings."""
    sections: list[tuple[str, Mapping[str, object]]] = [
        ("gateway", {"name": site.name, "scopes": list(site.scopes)}),
        ("mqtt", {"url": site.broker, **_login(site)}),
        *(
            (f"southbound.{_quote(site_equipment.name)}", _equipment(site_equipment, directory))
            for site_equipment in site.equipment
        ),
    ]
    head = "# Written by `edge init`. `man edge.toml` explains every key.\n"
    return head + "".join(_section(name, keys) for name, keys in sections)


def _login(site: Site) -> dict[str, object]:
    login: dict[str, object] = {"username": site.username} if site.username else {}
    return login | ({"password_file": _CREDENTIAL} if site.password else {})


def _equipment(site_equipment: SiteEquipment, directory: Path) -> dict[str, object]:
    keys: dict[str, object] = {"type_ids": list(site_equipment.type_ids)}
    if site_equipment.opcua_kind:
        own = str(directory / _CLIENT / "own.pem")
        url = site_equipment.address.partition("+")[2]
        files = {"cert_file": own, "key_file": own, "trusted": str(directory / _DEVICES)}
        return {"kind": site_equipment.opcua_kind, "url": url, **keys, **files}
    if site_equipment.openprotocol_url:
        return {"kind": "openprotocol", "url": site_equipment.openprotocol_url, **keys}
    return {"kind": "mqtt", **keys} | ({} if site_equipment.address == "mqtt" else {"url": site_equipment.address})


def _section(name: str, keys: Mapping[str, object]) -> str:
    return f"\n[{name}]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in keys.items())


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_quote, value))}]"
    return _quote(str(value))


def _quote(text: str) -> str:
    """Return a basic string of TOML; JSON escapes all that TOML does but DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_site(site: Site, directory: Path) -> Settings:
    """Write the settings of a site and return them with those of the other files.

    Raises SettingsError and OSError, and then leaves all files as they were.
    """
    file = directory / FILE
    for folder in (directory, file.parent):
        make_directory(folder, _FOLDER)
    names = (FILE, "edge.toml", _PASSWORD, _CLIENT / "own.pem", _CLIENT / "own.der")
    with _restored_on_failure(*(directory / name for name in names)):
        _write_files(site, directory)
        return gateway_settings(None, {**os.environ, "CONFIGURATION_DIRECTORY": str(directory)})


@contextmanager
def _restored_on_failure(*files: Path) -> Iterator[None]:
    """Restore the files when the block fails: a refused answer must not change a gateway that runs."""
    before = {file: (file.read_bytes(), file.stat().st_mode & 0o777) for file in files if file.exists()}
    try:
        yield
    except BaseException:  # Ctrl-C as well: a half written answer must not stay
        for file in files:
            if file in before:
                write_atomically(file, *before[file])
            else:
                file.unlink(missing_ok=True)
        raise


def _write_files(site: Site, directory: Path) -> None:
    if site.password:
        make_directory(directory / _PASSWORD.parent, 0o700)
        write_atomically(directory / _PASSWORD, site.password.encode(), _SECRET)
    if any(site_equipment.opcua_kind for site_equipment in site.equipment):
        _prepare_client(site, directory)
    if not (directory / "edge.toml").exists():
        write_atomically(directory / "edge.toml", _MAIN.encode(), _READABLE)
    write_atomically(directory / FILE, site_toml(site, directory).encode(), _READABLE)


def _prepare_client(site: Site, directory: Path) -> None:
    """Create the certificate with which the gateway is a client of equipment, where there is none."""
    own = directory / _CLIENT / "own.pem"
    make_directory(own.parent, _FOLDER)
    make_directory(directory / _DEVICES, _FOLDER)
    if not own.exists():
        renew(own.parent, f"urn:microdcs-edge:{site.name}", own_hosts())
        # The service reads it as a member of the group of this folder.
        own.chmod(_READABLE)


async def examine_site(settings: Settings) -> list[HealthFinding]:
    """Try the store, the brokers and the equipment that can be asked; return how each is."""
    if await asyncio.to_thread(starts_with_gateway, settings.redis.url):
        findings = [ok("store", "starts with the gateway")]
    else:
        findings = await findings_of("store", examine_store(settings.redis))
    for mqtt, listeners in brokers(settings):
        findings += await findings_of(
            Text.of("broker {host}", host=urlsplit(mqtt.url).hostname), examine_broker(mqtt, listeners)
        )
    for subject, examination in equipment_examinations(settings):
        findings += await findings_of(subject, examination)
    return findings


def next_steps(site: Site, directory: Path, *, is_installed: bool) -> Iterator[str]:
    """Yield the next steps of a person, a command or a sentence each."""
    if any(site_equipment.opcua_kind for site_equipment in site.equipment):
        yield f"Let each OPC UA device trust {directory / _CLIENT / 'own.der'}."
        yield f"Put the certificate of each OPC UA device into {directory / _DEVICES}."
    here = "" if is_installed else f" --settings {directory / 'edge.toml'}"
    yield "systemctl enable --now microdcs-edge" if is_installed else f"edge run{here}"
    yield f"edge doctor{here}"
    yield f"edge users add NAME --role operator{here}"
    yield f"edge station set workmaster RECIPE.json --id RECIPE --scope {site.scopes[0]}{here}"
