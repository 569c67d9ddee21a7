"""The queries of node kinds that read from the plant."""

from typing import TypeAlias

from msgspec import Struct

from edge.model.payload import Encoding


class LatestValue(Struct, frozen=True):
    """The value of the last sample of a tag that is not bad, at or before an instant; null without one."""

    tag: str
    until_ms: int


class SampleWindow(Struct, frozen=True):
    """The samples of a tag that are not bad, after one instant and not after another; their values, or the samples."""

    tag: str
    after_ms: int
    until_ms: int
    with_time: bool


class JobResults(Struct, frozen=True):
    """One member of the action results of the jobs that ended after one instant and not after another, as a list."""

    member: str
    action: str | None
    process: str | None
    after_ms: int
    until_ms: int


class VariableValue(Struct, frozen=True):
    """The value of an OPC UA variable of an equipment section."""

    equipment: str
    node: str


class HttpResource(Struct, frozen=True):
    """The JSON or text of a resource."""

    url: str


class RedisValue(Struct, frozen=True):
    """The value of a key in a foreign Redis, read only."""

    url: str
    key: str
    encoding: Encoding = "auto"


Query: TypeAlias = LatestValue | SampleWindow | JobResults | VariableValue | HttpResource | RedisValue
