"""What others add to the server: nodes before it listens, methods, and work while it is open."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from asyncua import Server, ua
from msgspec import Struct

from edge.config import OpcuaSettings
from edge.foundation.task_group import TaskGroup
from edge.opcua.server_core import ServerCore
from edge.opcua.server_transport import TcpListener
from edge.uaserver.certificates import OwnCertificate
from edge.uaserver.condition_space import ConditionSpace
from edge.uaserver.declarations import Declarations
from edge.uaserver.events import JobEventPublisher
from edge.uaserver.methods import Target

if TYPE_CHECKING:
    from edge.uaserver.server import UaServer


class NewServer(Struct, frozen=True):
    """A server that has its machines and does not listen yet."""

    server: Server
    listener: TcpListener
    settings: OpcuaSettings
    own: OwnCertificate
    uri: str
    """Its application URI."""
    declared: Declarations
    sources: Mapping[str, ua.NodeId]
    """The objects to which parts add: the machines by their scopes, and the gateway."""
    job_events: Mapping[str, JobEventPublisher]
    """The events of jobs, by scope."""
    tasks: TaskGroup
    """The tasks of this server."""
    conditions: ConditionSpace
    """The conditions of all features."""

    @property
    def core(self) -> ServerCore:
        """The core of the server, with its address space."""
        core: ServerCore = self.server.iserver
        return core


def _no_target(_: ua.NodeId) -> Target | None:
    return None


class ServerPart(Struct, frozen=True):
    """What a part does at a server to which it has added its nodes."""

    target_of: Callable[[ua.NodeId], Target | None] = _no_target
    """Returns the methods of an object; None for every object of others."""
    works: "Mapping[str, Callable[[UaServer], Coroutine[Any, Any, None]]]" = {}
    """What runs while the server is open, by the names of the tasks."""


AddPart: TypeAlias = Callable[[NewServer], Awaitable[ServerPart | None]]
"""Adds to a server that is made; a server that cannot listen is made again."""
