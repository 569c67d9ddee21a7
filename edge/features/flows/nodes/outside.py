"""The queries and the actions of node kinds: what they read outside of the flow, and what they change there."""

from typing import Any, TypeAlias

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


class WriteTag(Struct, frozen=True):
    """Write a value to a derived tag; rules evaluate it."""

    tag: str
    value: Any


class PublishMessage(Struct, frozen=True):
    """Publish a value to an MQTT topic."""

    topic: str
    retain: bool
    value: Any


class WriteVariable(Struct, frozen=True):
    """Write a value to an OPC UA variable of an equipment section."""

    equipment: str
    node: str
    value: Any


class PostResource(Struct, frozen=True):
    """Send a value to a resource over HTTP, as JSON."""

    url: str
    value: Any


class StartJob(Struct, frozen=True):
    """Store and start a job from a Work Master; a value that is an object brings the job's parameters."""

    scope: str
    work_master: str
    value: Any


class RaiseAlarm(Struct, frozen=True):
    """Raise an alarm of this severity (1-1000, OPC 10000-5); its subject is the flow."""

    flow: str
    alarm: str
    severity: int
    message: str
    value: Any


class AppendToFile(Struct, frozen=True):
    """Append a value to a file of the gateway, one line of CSV or one row of a columnar file."""

    file: str
    value: Any


class CommandEquipment(Struct, frozen=True):
    """Send a command to equipment that no job uses; each attempt of a node task is a command of its own."""

    equipment: str
    type_id: str
    value: Any
    attempt: int = 1


Action: TypeAlias = (
    WriteTag | PublishMessage | WriteVariable | PostResource | StartJob | RaiseAlarm | AppendToFile | CommandEquipment
)


def action_id(task_id: str, started_at: int) -> str:
    """Return the id of what a node task does: a flow that was deleted and registered again has the same task ids."""
    return f"{task_id}@{started_at}"


def task_of(action_id: str) -> str:
    """Return the id of the node task of an action."""
    return action_id.rpartition("@")[0]
