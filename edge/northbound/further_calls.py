"""The handlers of the calls of the MES and of sidecars that concern neither jobs nor settings."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.northbound.reply import Reply
from edge.station.settings import SettingsMethod

FurtherCall: TypeAlias = Callable[[CloudEvent, str], Awaitable[Reply]]
"""Executes a call that came over a topic, or `rpc`, and returns its answer. Raises Refused."""


def replying(execute: Callable[[CloudEvent, str], Awaitable[object]]) -> FurtherCall:
    """Return the handler of a function that returns the data of an answer, and records its change itself."""

    async def call(event: CloudEvent, origin: str) -> Reply:
        return Reply(await execute(event, origin))

    return call


def settings_method(event: CloudEvent) -> SettingsMethod:
    """Return the method of an event that sends or reads settings. Raises Refused for an unknown one."""
    method = event.extensions.get("method", SettingsMethod.PUT)
    if method not in {item.value for item in SettingsMethod}:
        raise Refused("invalid_payload", f"method {method!r} is not known.", "It is PUT, DELETE or GET.")
    return SettingsMethod(method)
