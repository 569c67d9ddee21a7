"""Asks a person for the settings of a site; a wrong answer is asked for again."""

import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import get_type_hints

import click

from edge.cli.terminal.output import print_text
from edge.config import GatewaySettings, MqttSettings
from edge.config.value import from_toml
from edge.features.admin.site_settings import Site, SiteEquipment, is_address

_NO_BROKER = "none"
_NAME = get_type_hints(GatewaySettings, include_extras=True)["name"]
_BROKER = get_type_hints(MqttSettings, include_extras=True)["url"]


def ask_site(directory: Path, addresses: str) -> Site:
    """Read all answers from the terminal. Raises click.Abort.

    `directory` is the folder of the settings, `addresses` describes the addresses that equipment can have.
    """
    print_text(f"Settings of this site, for {directory}. Enter takes what stands in brackets.")
    host = socket.gethostname().partition(".")[0]
    name = _ask("Name of this gateway", "edge" if _faults(host, _NAME) else host, lambda text: _faults(text, _NAME))
    scope = _ask("Scope (station) whose jobs run here", "station-1", lambda text: _faults(text, _NAME))
    broker = _ask(
        f"MQTT broker of the MES (mqtt://host, mqtts://host, {_NO_BROKER})",
        MqttSettings().url,
        lambda text: () if text == _NO_BROKER else _faults(text, _BROKER),
    )
    if broker == _NO_BROKER:
        return Site(name, (scope,), "", equipment=tuple(_ask_equipment(addresses, has_broker=False)))
    username = click.prompt("User name at the broker", default="", show_default=False)
    password = click.prompt("Its password", default="", hide_input=True, show_default=False) if username else ""
    return Site(name, (scope,), broker, username, password, tuple(_ask_equipment(addresses, has_broker=True)))


def _ask_equipment(addresses: str, *, has_broker: bool) -> Iterator[SiteEquipment]:
    """Yield equipment until an empty name."""
    names: set[str] = set()
    takers: dict[str, str] = {}

    def name_faults(text: str) -> Iterator[str]:
        if text in names:
            yield f"{text} is there already"
        elif text:
            yield from _faults(text, _NAME)

    def address_faults(text: str) -> Iterator[str]:
        if not is_address(text):
            yield f"{text!r} is not an address"
        elif text == "mqtt" and not has_broker:
            yield "the gateway has no broker; expected an address with a host"

    def action_faults(text: str) -> Iterator[str]:
        if not _parts(text):
            yield "expected at least one type_id"
        yield from (f"{part} is used by {takers[part]} already" for part in _parts(text) if part in takers)

    while name := _ask("Equipment: name (Enter ends)", "", name_faults):
        address = _ask(f"{name}: address ({addresses})", "mqtt" if has_broker else None, address_faults)
        type_ids = _parts(_ask(f"{name}: type_ids of its actions, separated by commas", None, action_faults))
        names.add(name)
        takers |= dict.fromkeys(type_ids, name)
        yield SiteEquipment(name, address, type_ids)


def _ask(question: str, default: str | None, faults: Callable[[str], Iterable[str]]) -> str:
    """Return the first answer without a fault."""

    def read(text: str) -> str:
        if found := list(faults(text.strip())):
            raise click.UsageError("; ".join(found))
        return text.strip()

    answer: str = click.prompt(question, default=default, show_default=bool(default), value_proc=read)
    return answer


def _faults(answer: str, hint: object) -> tuple[str, ...]:
    return from_toml(answer, hint).faults


def _parts(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
