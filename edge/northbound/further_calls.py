"""The type of a handler for the calls of the MES and of sidecars that concern neither jobs nor settings."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from edge.model.cloudevent import CloudEvent

FurtherCall: TypeAlias = Callable[[CloudEvent, str], Awaitable[object]]
"""Executes a call that came over a topic, or `rpc`, and returns the data of its answer. Raises Refused."""
