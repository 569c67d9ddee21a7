"""Asks the sentinels of a service for its primary: all side by side, each over a connection of its own.

One sentinel that answers names the primary. Further sentinels are learnt from each answer and remembered for the life
of the process: the listed ones may be gone when the store is opened again.
"""

import asyncio
import re
import ssl
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.config import RedisSettings, password_of
from edge.foundation.errors import EdgeError, SettingsError, Unavailable
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text, join_texts
from edge.store.connection import (
    AccessDenied,
    CommandConnection,
    Endpoint,
    ReplyError,
    TlsFailed,
    settings_advice,
)


class SentinelAddress(Struct, frozen=True):
    """The sentinels of an address, each as an endpoint, and the service whose primary they name.

    `server` is the primary without its host: login, TLS and database.
    """

    service: str
    sentinels: tuple[Endpoint, ...]
    server: Endpoint


def is_sentinel(url: str) -> bool:
    """Return whether an address names sentinels."""
    return url.startswith(("redis+sentinel:", "rediss+sentinel:"))


def sentinel_address_of(settings: RedisSettings) -> SentinelAddress:
    """Return the sentinels of `redis[s]+sentinel://[user:password@]host:port[,host:port…]/service`.

    The login of the address is that of the servers; the sentinels have one of their own in the settings.
    Raises SettingsError for certificates that cannot be read.
    """
    parts = urlsplit(settings.url)
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = map(unquote, login.partition(":"))
    tls = _tls_context(settings, {}) if parts.scheme.startswith("rediss") else None
    server = Endpoint(tls=tls, username=username, password=password_of(settings) or password)
    own = settings.sentinel_login
    sentinel = Endpoint(tls=tls, username=own.username, password=password_of(own), is_store=False)
    places = (text.rpartition(":") for text in hosts.split(","))
    sentinels = tuple(msgspec.structs.replace(sentinel, host=host, port=int(port)) for host, _, port in places)
    return SentinelAddress(unquote(parts.path.strip("/")), sentinels, server)


def endpoint_of(settings: RedisSettings, url: str) -> Endpoint:
    """Return where an address of a Unix socket, TCP or TLS leads; a password of the settings precedes its own.

    The query may name `db`, `username`, `password` and `client_name`, and for TLS `ssl_ca_certs`, `ssl_certfile` and
    `ssl_keyfile`, as with redis-py; other names have no effect. Raises SettingsError for certificates that cannot be
    read.
    """
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    number = query.get("db", "" if parts.scheme == "unix" else unquote(parts.path).strip("/"))
    return Endpoint(
        path=unquote(parts.path) if parts.scheme == "unix" else "",
        host=unquote(parts.hostname or "localhost"),
        port=parts.port or 6379,
        tls=_tls_context(settings, query) if parts.scheme == "rediss" else None,
        username=unquote(parts.username or "") or query.get("username", ""),
        password=password_of(settings) or unquote(parts.password or "") or query.get("password", ""),
        database=int(number) if number.isdecimal() else 0,
        client_name=query.get("client_name", ""),
    )


def _tls_context(settings: RedisSettings, query: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a client that verifies the server."""
    authority = settings.ca_file or query.get("ssl_ca_certs")
    certificate = settings.cert_file or query.get("ssl_certfile")
    try:
        context = ssl.create_default_context(cafile=authority or None)
        if certificate:
            context.load_cert_chain(certificate, settings.key_file or query.get("ssl_keyfile"))
    except (OSError, ValueError) as error:
        files = ", ".join(filter(None, (authority, certificate)))
        raise SettingsError(
            [Text.of("[redis] a certificate cannot be read: {reason} ({files})", reason=error, files=files)],
            "Correct ca_file, cert_file and key_file.",
        ) from error
    return context


def shown(url: str) -> str:
    """Return an address without its login, for messages."""
    return re.sub(r"//[^/]*@", "//", url)


logger = structlog.get_logger(__name__)

ASK_EVERY_S: Final = 0.3
ANSWERS_WITHIN_S: Final = 0.5
_BACKOFF_S = (0.05, 0.3)
_MOST_LEARNT = 16
_ADVICE = "Start the sentinels, or correct [redis] url."
_SILENT_MS: Final = 500
"""A sentinel asks a replica at once after a failover: one that runs has answered by then."""
_SERVICE_UNKNOWN = "ERR No such master"

_DOWN: Final = frozenset({"s_down", "o_down", "disconnected"})

_Place = tuple[str, int]
_learnt: Final[dict[tuple[str, tuple[_Place, ...]], dict[str, _Place]]] = {}
"""The sentinels that others have named, by service and listed sentinels: each by its id."""


class Primary(Struct, frozen=True):
    """A primary as sentinels name it; `config_epoch` grows with each failover of the service."""

    host: str
    port: int
    config_epoch: int

    def __str__(self) -> str:
        """Return the address for messages."""
        return f"{self.host}:{self.port}"


class ReplicaView(Struct, frozen=True):
    """What a sentinel reports of a replica. One with priority 0 is never promoted; `offset` is what it has received.

    `is_replica` is False when it called itself a primary the last time that the sentinel asked, each ten seconds.
    """

    place: _Place
    flags: frozenset[str]
    priority: int
    offset: int
    is_replica: bool = True
    is_silent: bool = False
    """Whether it has answered nothing since the sentinel learnt of the last failover, for _SILENT_MS at least. Sentinel
    promotes no replica before it has answered INFO (`sentinelSelectSlave` of sentinel.c)."""

    def __str__(self) -> str:
        """Return the address for messages."""
        return f"{self.place[0]}:{self.place[1]}"

    @property
    def is_down(self) -> bool:
        """Whether the sentinel does not reach it."""
        return bool(self.flags & _DOWN)


class SentinelView(Struct, frozen=True):
    """What one sentinel reports of a service; durations are in seconds.

    `last_ok_ping_s` is the time since the primary answered it last; `sentinels` counts those it knows, itself included.
    While it ends a failover, it names the new primary and still watches the old one, to which flags and times belong:
    then `is_watched` is False.
    """

    sentinel_id: str
    primary: Primary
    flags: frozenset[str]
    last_ok_ping_s: float
    down_after_s: float
    failover_timeout_s: float
    quorum: int
    sentinels: int
    is_watched: bool = True
    known: Mapping[str, _Place] = {}
    """The other sentinels by their ids, as far as it reports them."""
    replicas: Sequence[ReplicaView] = ()

    @property
    def reaches_primary(self) -> bool:
        """Whether it reaches the primary that it watches."""
        return not self.flags & _DOWN

    @property
    def majority(self) -> int:
        """The number of sentinels that can elect one to start a failover."""
        return self.sentinels // 2 + 1


class SentinelReport(Struct, frozen=True):
    """The last answer of a sentinel; `error` says why it does not answer now, then `view` is an old one or None."""

    address: str
    view: SentinelView | None
    error: str | Text = ""
    advice: str | Text = ""
    """What to do when it answers, but the settings do not suit it."""


def agreed(views: Iterable[SentinelView]) -> Primary | None:
    """Return the primary of the latest failover; None without views.

    A sentinel that was away names an older one. Several of one epoch exist only while a person changes the sentinels:
    then most of them decide.
    """
    counter = Counter(view.primary for view in views)
    return max(counter, key=lambda primary: (primary.config_epoch, counter[primary]), default=None)


def has_majority(views: Collection[SentinelView]) -> bool:
    """Return whether a majority of all sentinels has answered."""
    return bool(views) and len(views) >= max(view.majority for view in views)


class Sentinel:
    """One sentinel, with its persistent connection."""

    def __init__(self, endpoint: Endpoint, service: str) -> None:
        self.endpoint = endpoint
        self._connection = CommandConnection(endpoint, timeout=ANSWERS_WITHIN_S, backoff=_BACKOFF_S)
        self._service = service
        self._questions = (
            ("SENTINEL", "MYID"),
            # While a failover ends, this is the new primary, and MASTER still reports on the old one.
            ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service),
            ("SENTINEL", "MASTER", service),
            ("SENTINEL", "SENTINELS", service),
            ("SENTINEL", "REPLICAS", service),
        )

    def __str__(self) -> str:
        """Return the address for messages."""
        return f"{self.endpoint.host}:{self.endpoint.port}"

    async def ask(self) -> SentinelView:
        """Return its view of the service within ANSWERS_WITHIN_S. Raises Unavailable, SettingsError, AccessDenied."""
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                replies = await self._connection.call(*self._questions)
        except TimeoutError:
            raise Unavailable(Text.of("the sentinel {name} does not answer", name=self), _ADVICE) from None
        except AccessDenied as error:
            raise self._denied(error.message) from None
        except TlsFailed as error:
            raise TlsFailed(
                Text.of("the sentinel {name} does not answer: {reason}", name=self, reason=error), error.advice_text
            ) from None
        except Unavailable as error:
            raise Unavailable(
                Text.of("the sentinel {name} does not answer: {reason}", name=self, reason=error), _ADVICE
            ) from None
        for reply in replies:
            if isinstance(reply, ReplyError):
                raise self._error(str(reply))
        own_id, address, fields, others, replicas = replies
        try:
            return view_of(str(own_id), address, _fields(fields), _listed(others), _listed(replicas))
        except (KeyError, ValueError, TypeError) as error:
            raise Unavailable(
                Text.of(
                    "the sentinel {name} sent an answer that cannot be read: {reason}", name=self, reason=repr(error)
                ),
                _ADVICE,
            ) from None

    async def demand_failover(self, *option: str) -> str:
        """Demand a failover; return the error of the sentinel, empty when the failover begins. Raises Unavailable."""
        (reply,) = await self._connection.call(("SENTINEL", "FAILOVER", self._service, *option))
        return str(reply) if isinstance(reply, ReplyError) else ""

    def _error(self, reply: str) -> EdgeError:
        if reply.startswith(_SERVICE_UNKNOWN):
            return SettingsError(
                [Text.of("the sentinel {name} monitors no service {service!r}", name=self, service=self._service)],
                "End [redis] url with the name that stands in `sentinel monitor`.",
            )
        if reply.startswith(("NOAUTH", "NOPERM", "WRONGPASS")):
            return self._denied(reply)
        if "unknown command" in reply:
            return SettingsError(
                [Text.of("the server {name} is not a sentinel: {reply}", name=self, reply=reply)],
                "Name the sentinels in [redis] url; redis:// leads to a single server.",
            )
        return Unavailable(Text.of("the sentinel {name} cannot answer: {reply}", name=self, reply=reply), _ADVICE)

    def _denied(self, reason: str) -> AccessDenied:
        return AccessDenied(
            Text.of("the sentinel {name} refuses us: {reason}", name=self, reason=reason),
            "Correct [redis] sentinel_username and sentinel_password or sentinel_password_file.",
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _fields(reply: Any) -> Mapping[str, str]:
    """Return the fields of a sentinel's reply: a mapping in RESP3, a flat list from older servers."""
    return reply if isinstance(reply, Mapping) else dict(zip(reply[::2], reply[1::2], strict=True))


def _listed(reply: Any) -> list[Mapping[str, str]]:
    return [_fields(value) for value in reply]


def view_of(
    sentinel_id: str,
    address: Sequence[str],
    fields: Mapping[str, str],
    others: Iterable[Mapping[str, str]] = (),
    replicas: Iterable[Mapping[str, str]] = (),
) -> SentinelView:
    """Return the view of a sentinel.

    Its replies are those to `SENTINEL GET-MASTER-ADDR-BY-NAME`, `MASTER`, `SENTINELS` and `REPLICAS`.
    """
    host, port = address
    return SentinelView(
        sentinel_id=sentinel_id,
        primary=Primary(host, int(port), int(fields["config-epoch"])),
        is_watched=(fields["ip"], fields["port"]) == (host, port),
        flags=frozenset(fields["flags"].split(",")),
        last_ok_ping_s=int(fields["last-ok-ping-reply"]) / 1000,
        down_after_s=int(fields["down-after-milliseconds"]) / 1000,
        failover_timeout_s=int(fields["failover-timeout"]) / 1000,
        quorum=int(fields["quorum"]),
        sentinels=int(fields["num-other-sentinels"]) + 1,
        known={other["runid"]: (other["ip"], int(other["port"])) for other in others if other["runid"]},
        replicas=tuple(_replica_of(replica) for replica in replicas),
    )


def _replica_of(fields: Mapping[str, str]) -> ReplicaView:
    return ReplicaView(
        place=(fields["ip"], int(fields["port"])),
        flags=frozenset(fields["flags"].split(",")),
        priority=int(fields["slave-priority"]),
        offset=int(fields["slave-repl-offset"]),
        is_replica=fields.get("role-reported") == "slave",
        # The sentinel learns the run id from the first INFO; the time runs from the failover until the first answer.
        is_silent=not fields["runid"] and int(fields["last-ok-ping-reply"]) >= _SILENT_MS,
    )


TakeView = Callable[[SentinelView, float], None]
"""Takes the view of a sentinel, and the instant of the event loop at which it was asked."""


class Sentinels:
    """All sentinels of a service: those of the address and those that were learnt from them.

    The fence reads `views`, the last one of each sentinel by its id; the state of the store reads `reports`.
    """

    def __init__(self, address: SentinelAddress) -> None:
        self._address = address
        listed = tuple((sentinel.host, sentinel.port) for sentinel in address.sentinels)
        self._learnt = _learnt.setdefault((address.service, listed), {})
        self._asked: dict[_Place, Sentinel] = {}
        self._ids: dict[_Place, str] = {}
        self.views: dict[str, SentinelView] = {}
        self._errors: dict[_Place, EdgeError] = {}
        self._silent_since: dict[_Place, float] = {}
        for place in (*listed, *self._learnt.values()):
            self._add(place)

    def _add(self, place: _Place) -> Sentinel:
        endpoint = replace(self._address.sentinels[0], host=place[0], port=place[1])
        return self._asked.setdefault(place, Sentinel(endpoint, self._address.service))

    @property
    def service(self) -> str:
        """The name by which they monitor the primary."""
        return self._address.service

    @property
    def reports(self) -> Sequence[SentinelReport]:
        """The last answer of each sentinel, or why it does not answer now."""
        return [self._report(place) for place in sorted(self._asked)]

    def _report(self, place: _Place) -> SentinelReport:
        error = self._errors.get(place)
        view = self.views.get(self._ids.get(place, ""))
        missing = "" if view else Text.of("no answer yet")
        if error is None:
            return SentinelReport(str(self._asked[place]), view, missing)
        return SentinelReport(str(self._asked[place]), view, error.text, settings_advice(error))

    async def demand_failover(self, address: str, *option: str) -> str:
        """Demand a failover of one sentinel; return its error, empty when the failover begins. Raises Unavailable."""
        return await next(sentinel for sentinel in self._asked.values() if str(sentinel) == address).demand_failover(
            *option
        )

    async def find_primary(self, take: TakeView = lambda _view, _sent_at: None) -> Primary:
        """Return the present primary; hand each view to `take`.

        A silent sentinel does not delay it, once a majority has answered. Raises Unavailable when no sentinel answers,
        SettingsError when those that do monitor no such service.
        """
        heard: dict[str, SentinelView] = {}

        def note(view: SentinelView, sent_at: float) -> None:
            heard[view.sentinel_id] = view
            take(view, sent_at)

        asked: set[_Place] = set()
        pending: set[asyncio.Task[None]] = set()
        try:
            while (new := self._asked.keys() - asked) or pending:
                asked |= new
                pending |= {asyncio.create_task(self._ask(self._asked[place], note)) for place in new}
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                if has_majority(heard.values()):
                    break
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        if primary := agreed(heard.values()):
            return primary
        # A refusal has an advice of its own; a silent sentinel says nothing of the others.
        reasons = sorted(self._errors.values(), key=lambda error: not isinstance(error, SettingsError | AccessDenied))
        if reasons and isinstance(reasons[0], SettingsError | AccessDenied):
            raise reasons[0]
        advices = [advice for error in reasons if (advice := settings_advice(error))]
        stated = join_texts("; ", (reason.text for reason in reasons))
        raise Unavailable(Text.of("no sentinel answers: {reasons}", reasons=stated), advices[0] if advices else _ADVICE)

    async def refresh(self, take: TakeView = lambda _view, _sent_at: None) -> None:
        """Query every sentinel once, also those learnt meanwhile, and wait for all; hand each view to `take`."""
        asked: set[_Place] = set()
        while new := self._asked.keys() - asked:
            asked |= new
            await asyncio.gather(*(self._ask(self._asked[place], take) for place in new))

    async def watch(self, take: TakeView, every_s: float = ASK_EVERY_S) -> None:
        """Query every sentinel at this interval until cancelled, each in a task of its own."""
        async with TaskGroup() as tasks:
            watched: set[_Place] = set()
            while True:
                for place in self._asked.keys() - watched:
                    watched.add(place)
                    tasks.create_task(self._watch(self._asked[place], take, every_s), name=f"sentinel {place[0]}")
                await asyncio.sleep(every_s)

    async def _watch(self, sentinel: Sentinel, take: TakeView, every_s: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + every_s
            await self._ask(sentinel, take)
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def _ask(self, sentinel: Sentinel, take: TakeView) -> None:
        place = (sentinel.endpoint.host, sentinel.endpoint.port)
        sent_at = asyncio.get_running_loop().time()
        try:
            view = await sentinel.ask()
        except EdgeError as error:
            if place not in self._errors:
                logger.warning("sentinel unavailable", sentinel=str(sentinel), reason=error.message)
            self._errors[place] = error
            self._forget(place, sent_at)
            return
        self._silent_since.pop(place, None)
        if self._errors.pop(place, None):
            logger.info("sentinel available again", sentinel=str(sentinel))
        self._ids[place] = view.sentinel_id
        self.views[view.sentinel_id] = view
        self._learn(view)
        take(view, sent_at)

    def _forget(self, place: _Place, sent_at: float) -> None:
        """Drop the view of a sentinel that is silent for longer than `down-after`: a replica of it may be gone, too."""
        silent_s = sent_at - self._silent_since.setdefault(place, sent_at)
        view = self.views.get(self._ids.get(place, ""))
        if view is not None and silent_s > view.down_after_s:
            del self.views[view.sentinel_id]

    def _learn(self, view: SentinelView) -> None:
        """Remember the other sentinels; one that is asked under another name is known by its id."""
        ids = set(self._ids.values())
        for sentinel_id, place in view.known.items():
            if sentinel_id not in ids and place not in self._asked and len(self._learnt) < _MOST_LEARNT:
                self._learnt[sentinel_id] = place
                self._add(place)

    def close(self) -> None:
        """Close all connections."""
        for sentinel in self._asked.values():
            sentinel.close()
