"""Holds asyncua 2.1.0 to what we promise: whoever connects may look, and nothing else.

Everything we have to do differently from asyncua stands here, as subclasses of its parts; nothing is patched
into its modules. `tests/uaserver/test_hardening.py` notices when asyncua mends one of them itself.
"""

from typing import Never

from asyncua import ua
from asyncua.common.connection import TransportLimits
from asyncua.common.utils import ServiceError
from asyncua.crypto.permission_rules import USER_TYPES, PermissionRuleset, User, UserRole
from asyncua.server.address_space import AttributeService
from asyncua.server.internal_server import InternalServer
from asyncua.server.user_managers import UserManager

from edge.uaserver.type_cache import TypeNodes

# asyncua would gather 100 MiB of chunks for anybody, before it knows who that is
# (github.com/FreeOpcUa/opcua-asyncio/issues/1962).
_CHUNK_BYTES = 65_535
_MAX_CHUNKS = 64
_MAX_CONNECTIONS = 20


class LookOnly(PermissionRuleset):
    """Which services clients may ask for: those that change nothing; Write and Call, to hear no in their way.

    asyncua's SimpleRoleRuleset opens AddNodes and its like to whoever is called "admin".
    """

    _allowed = frozenset(ua.NodeId(service) for service in USER_TYPES)

    def check_validity(self, user: User, action_type_id: ua.NodeId, body: object) -> bool:
        """Tell whether the service may run."""
        del user, body
        return action_type_id in self._allowed


class Anonymous(UserManager):
    """Takes everybody for an ordinary user: no name and no password makes an administrator.

    asyncua's PermissiveUserManager makes "admin" with any password one.
    """

    def get_user(
        self,
        iserver: InternalServer,
        username: str | None = None,
        password: str | None = None,
        certificate: object = None,
    ) -> User:
        """Answer who is at the other end."""
        del iserver, username, password, certificate
        return User(role=UserRole.User)


class ReadOnlyAttributes(AttributeService):
    """Refuses writes from outside: official nodes, JobOrderResponseList for one, say they are writable."""

    async def write(self, params: ua.WriteParameters, user: User) -> list[ua.StatusCode]:
        """Write for this program itself, which is asyncua's administrator; refuse everybody else."""
        if user.role is UserRole.Admin:
            written: list[ua.StatusCode] = await super().write(params, user)
            return written
        return [ua.StatusCode(ua.StatusCodes.BadUserAccessDenied) for _ in params.NodesToWrite]


class LookOnlyServer(InternalServer):
    """asyncua's server core under the rules of this module; without `types` it makes namespace 0 itself."""

    def __init__(self, types: TypeNodes | None) -> None:
        super().__init__(user_manager=Anonymous())
        self._types = types
        self.attribute_service = ReadOnlyAttributes(self.aspace)
        self.allow_remote_admin = False
        self.supported_tokens = (ua.AnonymousIdentityToken,)
        self.max_connections = _MAX_CONNECTIONS
        # asyncua's clock only looks every second whether it should stop, which stopping would wait for. We
        # run our own.
        self.disabled_clock = True

    async def load_standard_address_space(self, shelf_file: object = None) -> None:
        """Take the prepared types whole; asyncua's own cache has namespace 0 only, and is never found."""
        if self._types is None:
            await super().load_standard_address_space()
        else:
            self.aspace._nodes = self._types  # noqa: SLF001 - as asyncua's load_aspace_shelf does

    async def stop(self) -> None:
        """Stop with every session: asyncua leaves those running whose subscriptions outlive their connection."""
        for session in tuple(self._external_sessions.values()):
            await session.close_session()
        await super().stop()

    def register_server(self, *_: object) -> Never:
        """Refuse: asyncua lets anybody, without a session, add to what we answer about other servers."""
        raise ServiceError(ua.StatusCodes.BadServiceUnsupported)


def limits() -> TransportLimits:
    """Bound what one message may cost us."""
    return TransportLimits(
        max_recv_buffer=_CHUNK_BYTES,
        max_send_buffer=_CHUNK_BYTES,
        max_chunk_count=_MAX_CHUNKS,
        max_message_size=_MAX_CHUNKS * _CHUNK_BYTES,
    )
