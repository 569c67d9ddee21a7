"""What all connections share: the address space, its limits and counters, the sessions, the subscriptions.

asyncua's core stays for its address space and its node sets; `tests/opcua/test_server_core.py` fails when asyncua
corrects one of the reasons for which the rest is our own (docs/explanation/asyncua.md).
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from itertools import count
from typing import Any, Protocol

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.security_policies import SecurityPolicyFactory
from asyncua.server.address_space import NodeData
from asyncua.server.internal_server import InternalServer

from edge.opcua.access import AccessPolicy, Caller
from edge.opcua.limits import DEFAULTS, ServerLimits
from edge.opcua.request_counts import ServerCounts
from edge.opcua.server_channel import ServerChannel
from edge.opcua.server_session import ServerSession
from edge.opcua.subscriptions import ClientSubscriptions, SessionConnection
from edge.opcua.time_slices import Turn, Turns
from edge.opcua.view_service import ReferenceTypes


class MethodExtension(Protocol):
    """Performs method calls that need the session of the caller."""

    def serves(self, request: ua.CallMethodRequest) -> bool:
        """Return whether the call is for this extension."""

    async def call(self, request: ua.CallMethodRequest, session: Any) -> ua.CallMethodResult:
        """Perform a method call for a session."""


class HistoryService(Protocol):
    """Reads history for a session."""

    async def read(self, params: ua.HistoryReadParameters, session: Any, turn: Turn) -> list[ua.HistoryReadResult]:
        """Read the history of nodes. Raises ServiceError for a request that is invalid as a whole."""


class NoHistory:
    """Refuses: there is no history, and asyncua would return an empty one."""

    async def read(self, params: ua.HistoryReadParameters, _session: Any, _turn: Turn) -> list[ua.HistoryReadResult]:
        """Return that no node has history."""
        unsupported = ua.StatusCode(ua.StatusCodes.BadHistoryOperationUnsupported)
        return [ua.HistoryReadResult(StatusCode=unsupported) for _ in params.NodesToRead]


def _ignore_session() -> None:
    """Ignore a session: there are no lists of jobs."""


async def _no_method(_request: ua.CallMethodRequest) -> ua.CallMethodResult:
    """Return that the method does not exist."""
    return ua.CallMethodResult(StatusCode=ua.StatusCode(ua.StatusCodes.BadMethodInvalid))


class ServerCore(InternalServer):
    """asyncua's server core with the rules of this module; without `types` it creates namespace 0 itself."""

    def __init__(
        self,
        types: MutableMapping[ua.NodeId, NodeData] | None,
        access: AccessPolicy,
        activation_s: float,
        limits: ServerLimits = DEFAULTS,
    ) -> None:
        super().__init__()
        self.access = access
        self.activation_s = activation_s
        self.limits = limits
        self.turns = Turns()
        self.counts = ServerCounts()
        self.subscriptions = ClientSubscriptions(self.aspace, limits, self.turns)
        """Those of clients; asyncua's service has none."""
        self.read_checks: list[Callable[[ua.NodeId, Caller, ServerChannel], bool]] = []
        """Return whether a caller may read the value of a node; each check must agree."""
        self.localized: dict[ua.NodeId, Callable[[Sequence[str]], ua.Variant]] = {}
        """Variables whose value depends on the LocaleIds of the session, each with the function that reads it."""
        self.note_session: Callable[[], None] = _ignore_session
        """Called for each new session."""
        self.preparations: dict[ua.NodeId, Callable[[], Awaitable[None]]] = {}
        """Awaited before the value of a variable is read or monitored; a list of jobs costs nothing before."""
        self.call_method: Callable[[ua.CallMethodRequest], Awaitable[ua.CallMethodResult]] = _no_method
        """Performs the methods of jobs and of parts."""
        self.method_extensions: list[MethodExtension] = []
        """Perform the methods of conditions and of certificates, each where it is configured."""
        self.history: HistoryService = NoHistory()
        self.reference_types = ReferenceTypes(self.aspace)
        self.policies: list[SecurityPolicyFactory] = []
        """What channels that open from now on may use."""
        self.other_servers: Sequence[ua.ApplicationDescription] = ()
        """What FindServers returns in addition to this server."""
        self._types = types
        self._sessions: dict[ua.NodeId, ServerSession] = {}
        self._session_numbers = count(1)
        # asyncua's clock checks only every second whether it should stop, and stopping would wait for it. The server
        # has its own.
        self.disabled_clock = True

    async def write_limits(self) -> None:
        """Write the operation limits of the available services."""
        for name, most in self.limits.operations.items():
            node = ua.NodeId(getattr(ua.ObjectIds, f"Server_ServerCapabilities_OperationLimits_{name}"))
            await self.write_attribute_value(node, ua.DataValue(ua.Variant(most, ua.VariantType.UInt32)))

    def create_session(self, address: str, connection: SessionConnection) -> ServerSession:
        """Create a session of a client. Raises BadTooManySessions."""
        if self.sessions >= self.limits.sessions:
            raise ServiceError(ua.StatusCodes.BadTooManySessions)
        self.counts.sessions += 1
        session = ServerSession(self, next(self._session_numbers), address, connection)
        self._sessions[session.auth_token] = session
        return session

    def session_of(self, token: ua.NodeId) -> ServerSession | None:
        """Return the session of this token."""
        return self._sessions.get(token)

    def forget_session(self, session: ServerSession) -> None:
        """Remove a session that was closed."""
        self._sessions.pop(session.auth_token, None)

    def make_room_for_session(self) -> None:
        """Close the sessions whose clients were lost, the oldest first, as far as a new session needs it."""
        while self.sessions >= self.limits.sessions and (session := self._oldest_orphan()) is not None:
            session.close()

    def make_room_for_subscription(self, session: ServerSession) -> None:
        """End the subscriptions of lost clients, the oldest first, as far as a new one of a session needs it.

        A user, and an address, has at most half of all. Raises BadTooManySubscriptions.
        """
        most = max(self.limits.subscriptions // 2, self.limits.subscriptions_of_session)
        for sessions, limit in (
            ([other for other in self.client_sessions if other.user_key == session.user_key], most),
            ([other for other in self.client_sessions if other.address == session.address], most),
            (self.client_sessions, self.limits.subscriptions),
        ):
            while sum(len(other.owned_subscriptions()) for other in sessions) >= limit:
                if (orphan := self._oldest_orphan(sessions)) is None:
                    raise ServiceError(ua.StatusCodes.BadTooManySubscriptions)
                orphan.close()

    def _oldest_orphan(self, sessions: Iterable[ServerSession] | None = None) -> ServerSession | None:
        """Return the session of the client that was lost first; None when all are connected."""
        lost = [
            session
            for session in (self.client_sessions if sessions is None else sessions)
            if not session.connection.is_open
        ]
        return min(lost, key=lambda session: session.record.last_contact, default=None)

    async def get_endpoints(
        self, params: ua.GetEndpointsParameters | None = None, sockname: tuple[str, int] | None = None
    ) -> list[ua.EndpointDescription]:
        """Return the endpoints of the transport profiles that a client names; all where it names none."""
        endpoints: list[ua.EndpointDescription] = await super().get_endpoints(params, sockname)
        profiles = (params and params.ProfileUris) or ()
        return [endpoint for endpoint in endpoints if not profiles or endpoint.TransportProfileUri in profiles]

    async def servers(
        self, params: ua.FindServersParameters, local: tuple[str, int] | None
    ) -> list[ua.ApplicationDescription]:
        """Return this server, as a client reaches it, and the others; as far as the client asks for them."""
        endpoints = await super().get_endpoints(ua.GetEndpointsParameters(EndpointUrl=params.EndpointUrl), local)
        own = [endpoint.Server for endpoint in endpoints[:1]]
        others = [
            server for server in self.other_servers if server.ApplicationUri not in {s.ApplicationUri for s in own}
        ]
        uris = params.ServerUris or ()
        return [server for server in (*own, *others) if not uris or server.ApplicationUri in uris]

    @property
    def client_sessions(self) -> tuple[ServerSession, ...]:
        """Return the sessions of clients."""
        return tuple(self._sessions.values())

    @property
    def sessions(self) -> int:
        """The number of client sessions."""
        return len(self._sessions)

    async def load_standard_address_space(self, shelf_file: object = None) -> None:
        """Use the prepared types; asyncua's own cache has namespace 0 only, and is never found."""
        if self._types is None:
            await super().load_standard_address_space()
        else:
            self.aspace._nodes = self._types  # noqa: SLF001 - as asyncua's load_aspace_shelf does

    async def stop(self) -> None:
        """Stop, and close every session."""
        for session in self.client_sessions:
            session.close()
        await super().stop()
        self.turns.close()
