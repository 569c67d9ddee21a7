"""The calls of operations by their type: what the MES and sidecars may call apart from jobs and settings."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from edge.model.cloudevent import CloudEvent

FurtherCall: TypeAlias = Callable[[CloudEvent, str], Awaitable[object]]
"""Executes a call that came over a topic, or `rpc`, and returns the data of its answer. Raises Refused."""
