"""Changes the core of asyncua 2.1.0: its limits, its services, its sessions.

The changes for one connection are in `server_framing`, `server_channel`, `request_processor` and `server_session`, as
subclasses of asyncua's parts. `tests/opcua/test_server_core.py` fails when asyncua fixes one of them itself.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, Never, Protocol

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.permission_rules import USER_TYPES, PermissionRuleset, User, UserRole
from asyncua.server.address_space import AttributeService, NodeData
from asyncua.server.internal_server import InternalServer

from edge.opcua.access import AccessPolicy, Caller, Peer
from edge.opcua.limits import DEFAULTS, ServerLimits
from edge.opcua.request_counts import ServerCounts
from edge.opcua.server_session import ServerSession
from edge.opcua.subscriptions import ClientSubscriptions
from edge.opcua.time_slices import Turns
from edge.opcua.view_service import ReferenceTypes


class MethodExtension(Protocol):
    """Performs method calls that need the session of the caller."""

    def serves(self, request: ua.CallMethodRequest) -> bool:
        """Return whether the call is for this extension."""

    async def call(self, request: ua.CallMethodRequest, session: Any) -> ua.CallMethodResult:
        """Perform a method call for a session."""


class HistoryService(Protocol):
    """Reads history for a session."""

    async def read(self, params: ua.HistoryReadParameters, session: Any) -> list[ua.HistoryReadResult]:
        """Read the history of nodes. Raises ServiceError for a request that is invalid as a whole."""


class NoHistory:
    """Refuses: there is no history, and asyncua would return an empty one."""

    async def read(self, params: ua.HistoryReadParameters, _session: Any) -> list[ua.HistoryReadResult]:
        """Return that no node has history."""
        unsupported = ua.StatusCode(ua.StatusCodes.BadHistoryOperationUnsupported)
        return [ua.HistoryReadResult(StatusCode=unsupported) for _ in params.NodesToRead]


class AllowedServices(PermissionRuleset):
    """The services that clients may use: those that do not add or delete nodes.

    Write and Call have their own rules. asyncua's SimpleRoleRuleset allows AddNodes and similar services to a user with
    the name "admin".
    """

    _allowed = frozenset(
        ua.NodeId(service)
        for service in (
            *USER_TYPES,
            ua.ObjectIds.BrowseNextRequest_Encoding_DefaultBinary,
            ua.ObjectIds.SetTriggeringRequest_Encoding_DefaultBinary,
            ua.ObjectIds.CancelRequest_Encoding_DefaultBinary,
        )
    )

    def check_validity(self, user: User, action_type_id: ua.NodeId, body: object) -> bool:
        """Return whether the service may run."""
        del user, body
        return action_type_id in self._allowed


class ReadOnlyAttributes(AttributeService):
    """Refuses writes of clients: some official nodes, such as JobOrderResponseList, are declared writable."""

    async def write(self, params: ua.WriteParameters, user: User) -> list[ua.StatusCode]:
        """Write for this program, which is asyncua's administrator; refuse every other caller."""
        if user.role is UserRole.Admin:
            written: list[ua.StatusCode] = await super().write(params, user)
            return written
        return [ua.StatusCode(ua.StatusCodes.BadUserAccessDenied) for _ in params.NodesToWrite]


async def _nothing_to_catch_up() -> None:
    """Return at once: without lists of jobs nothing lags behind."""


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
        # `request_processor` activates sessions because it knows the channel: asyncua's managers do not.
        self.user_manager = None
        self.access = access
        self.activation_s = activation_s
        self.limits = limits
        self.turns = Turns()
        self.counts = ServerCounts()
        self.subscriptions = ClientSubscriptions(self.aspace, limits, self.turns)
        """Those of clients; asyncua's service has none."""
        self.restricted: dict[ua.NodeId, Callable[[Caller, Peer], bool]] = {}
        """Variables that not every caller may read, each with the check."""
        self.localized: dict[ua.NodeId, Callable[[Sequence[str]], ua.Variant]] = {}
        """Variables whose value depends on the LocaleIds of the session, each with the function that reads it."""
        self.catch_up: Callable[[], Awaitable[None]] = _nothing_to_catch_up
        """Called for each new session, before it is answered: without sessions the lists of jobs lag behind."""
        self.method_extensions: list[MethodExtension] = []
        """Perform the methods of conditions and of certificates, each where it is configured."""
        self.history: HistoryService = NoHistory()
        self.reference_types = ReferenceTypes(self.aspace)
        self._types = types
        self.attribute_service = ReadOnlyAttributes(self.aspace)
        self.allow_remote_admin = False
        certificates = (ua.X509IdentityToken,) if access.allows_certificates else ()
        self.supported_tokens = (ua.AnonymousIdentityToken, ua.UserNameIdentityToken, *certificates)
        self.max_connections = limits.connections
        # asyncua's clock checks only every second whether it should stop, and stopping would wait for it. The server
        # has its own.
        self.disabled_clock = True

    def show_servers(self, others: Iterable[ua.RegisteredServer]) -> None:
        """Return these servers, and this one, in the answers to FindServers."""
        own = {endpoint.Server.ApplicationUri for endpoint in self.endpoints}
        for uri in self._known_servers.keys() - own:
            del self._known_servers[uri]
        for other in others:
            super().register_server(other)

    async def setup_nodes(self) -> None:
        """Write the operation limits of the available services."""
        await super().setup_nodes()
        for name, most in self.limits.operations.items():
            node = ua.NodeId(getattr(ua.ObjectIds, f"Server_ServerCapabilities_OperationLimits_{name}"))
            await self.write_attribute_value(node, ua.DataValue(ua.Variant(most, ua.VariantType.UInt32)))

    def create_session(self, name: Any, user: User | None = None, external: bool = False) -> ServerSession:  # noqa: FBT001, FBT002 - asyncua's signature
        """Create a session of a client. Raises BadTooManySessions."""
        del user, external
        if self.sessions >= self.limits.sessions:
            raise ServiceError(ua.StatusCodes.BadTooManySessions)
        self.counts.sessions += 1
        return ServerSession(self, name)

    async def make_room_for_session(self) -> None:
        """Close the sessions whose clients were lost, the oldest first, as far as a new session needs it."""
        while self.sessions >= self.limits.sessions and (session := self._oldest_orphan()) is not None:
            await session.close_session()

    async def make_room_for_subscription(self, session: ServerSession) -> None:
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
                await orphan.close_session()

    def _oldest_orphan(self, sessions: Iterable[ServerSession] | None = None) -> ServerSession | None:
        """Return the session of the client that was lost first; None when all are connected."""
        lost = [
            session
            for session in (self.client_sessions if sessions is None else sessions)
            if not session.is_closed() and (session.connection is None or not session.connection.is_open)
        ]
        return min(lost, key=lambda session: session.record.last_contact, default=None)

    async def get_endpoints(
        self, params: ua.GetEndpointsParameters | None = None, sockname: tuple[str, int] | None = None
    ) -> list[ua.EndpointDescription]:
        """Return the endpoints of the transport profiles that a client names; all where it names none."""
        endpoints: list[ua.EndpointDescription] = await super().get_endpoints(params, sockname)
        profiles = (params and params.ProfileUris) or ()
        return [endpoint for endpoint in endpoints if not profiles or endpoint.TransportProfileUri in profiles]

    @property
    def client_sessions(self) -> tuple[ServerSession, ...]:
        """Return the sessions of clients."""
        return tuple(self._external_sessions.values())

    @property
    def sessions(self) -> int:
        """The number of client sessions."""
        return len(self._external_sessions)

    async def load_standard_address_space(self, shelf_file: object = None) -> None:
        """Use the prepared types; asyncua's own cache has namespace 0 only, and is never found."""
        if self._types is None:
            await super().load_standard_address_space()
        else:
            self.aspace._nodes = self._types  # noqa: SLF001 - as asyncua's load_aspace_shelf does

    async def stop(self) -> None:
        """Stop and close every session: asyncua leaves those whose subscriptions outlive their connection."""
        for session in tuple(self._external_sessions.values()):
            await session.close_session()
        await super().stop()
        self.turns.close()

    def register_server(self, *_: object) -> Never:
        """Refuse: asyncua lets every client, without a session, add servers to the answers of FindServers."""
        raise ServiceError(ua.StatusCodes.BadServiceUnsupported)
