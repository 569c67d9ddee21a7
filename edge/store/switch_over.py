"""Promotes a replica, planned: nothing that was accepted is lost, and work pauses for a moment.

Sentinel decides and changes the roles. One of Valkey 9 coordinates that with the primary. An older one promotes a
replica whatever the primary still accepts, so we pause the writes of the primary until a majority names the new one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError, Refused, Unavailable
from edge.foundation.text import Text, as_text
from edge.store.connection import Command, CommandConnection, Endpoint, ReplyError
from edge.store.fence import ask_fence, watched
from edge.store.keys import Keys
from edge.store.observer import StoreObserver
from edge.store.query import value_of
from edge.store.sentinels import Primary, Sentinels, SentinelView, agreed, is_sentinel, sentinel_address_of
from edge.store.store_state import ReplicaState, StoreState, lag_text

KIND: Final = "switch_over"
FIRST_PRIORITY: Final = 1
"""Sentinel prefers a replica of this priority to any other."""
_MOST_MISSING_BYTES: Final = 1_000_000
"""What a replica may lack: with more, the pause of the writes would last."""
_STATUS: Final = Text.of("See: edge store status")
_REPAIR: Final = Text.of("Repair it, or name another replica with --to. {status}", status=_STATUS)


class NotAnswering(Refused):
    """A replica that does not answer: where Sentinel just made it one, its connections were cut once."""

    def __init__(self, address: str, error: str | Text) -> None:
        super().__init__(
            KIND, Text.of("the replica {address} does not answer: {reason}.", address=address, reason=error), _REPAIR
        )


class NotLinked(Refused):
    """A replica has no link to the primary now; it may have one soon."""

    def __init__(self, address: str) -> None:
        super().__init__(KIND, Text.of("the replica {address} has no link to the primary.", address=address), _REPAIR)
        self.address = address


def candidates_of(state: StoreState, to: str) -> Sequence[ReplicaState]:
    """Return the replicas that Sentinel may promote: only `to` where it is given.

    Raises Refused when the primary cannot be changed now without a loss; nothing was changed then.
    """
    if state.fence is None:
        raise Refused(KIND, "[redis] url names a single server.", "A switch-over needs a replica and Sentinel.")
    if state.fence.reason or state.primary is None or state.primary.error:
        reason = state.fence.reason or (state.primary.error if state.primary else Text.of("no primary is known"))
        raise Refused(
            KIND,
            Text.of("the primary is not confirmed: {reason}.", reason=reason),
            Text.of("Repair the line first. {status}", status=_STATUS),
        )
    if to and to == state.primary.address:
        raise Refused(KIND, Text.of("{to} is the primary already.", to=to), _STATUS)
    promotable = [replica for replica in state.replicas if replica.priority > 0]
    if to and to not in {replica_state.address for replica_state in promotable}:
        names = ", ".join(replica_state.address for replica_state in promotable) or Text.of("none")
        raise Refused(
            KIND,
            Text.of("{to} is not a replica that can be promoted.", to=to),
            Text.of("Those that can: {names}. {status}", names=names, status=_STATUS),
        )
    replica_states = [replica_state for replica_state in promotable if not to or replica_state.address == to]
    if not replica_states:
        raise Refused(
            KIND,
            "no replica can be promoted.",
            Text.of("Start a replica with a priority above 0. {status}", status=_STATUS),
        )
    for item in replica_states:
        if item.error:
            raise NotAnswering(item.address, item.error)
        if obstacle := _obstacle(item, needs_aof=state.durability != "any"):
            raise Refused(
                KIND, Text.of("the replica {address} {reason}.", address=item.address, reason=obstacle), _REPAIR
            )
    for element in replica_states:
        if not element.is_linked or element.is_down:
            raise NotLinked(element.address)
    if to and any(
        replica_state.priority <= FIRST_PRIORITY for replica_state in promotable if replica_state.address != to
    ):
        advice = "Raise `replica-priority` of the others, then wait ten seconds."
        raise Refused(
            KIND,
            Text.of(
                "Sentinel would prefer a replica of priority {first_priority} to {to}.",
                first_priority=FIRST_PRIORITY,
                to=to,
            ),
            advice,
        )
    return replica_states


def _obstacle(replica: ReplicaState, *, needs_aof: bool) -> Text | None:
    # Of a former primary, until it is a replica, the offset is that of another history.
    if replica.is_linked and (replica.lag_bytes or 0) > _MOST_MISSING_BYTES:
        return Text.of("lags behind by {lag}", lag=lag_text(replica))
    return Text("keeps no append-only file") if needs_aof and not replica.has_aof else None


CAUGHT_UP_WITHIN_S: Final = 1.0
PROMOTED_WITHIN_S: Final = 15.0
"""Sentinel takes about 1.2 s. It ends its attempt after `failover-timeout`, 10 s in our guide: until then a replica may
be promoted, and the gateways accept nothing at the present primary."""
COORDINATED_WITHIN_S: Final = 15.0
_DEMOTED_WITHIN_S: Final = 5.0
LINKED_WITHIN_S: Final = 20.0
"""Sentinel makes a former primary that runs a replica about ten seconds after a failover by hand, or after a partition
has healed; then it copies what it missed."""
_INFO_WITHIN_S: Final = 15.0
"""A sentinel reads the roles and priorities of the replicas every ten seconds."""
_PAUSE_MS: Final = 2000
_PAUSE_AGAIN_S: Final = 0.5
_POLL_S: Final = 0.03
_ANSWERS_WITHIN_S: Final = 2.0
_WATCH_S: Final = 0.1
_WITHIN_S: Final = 1.0
_BEGINS_WITHIN_S: Final = 2.0
_CONNECTS_WITHIN_S: Final = 2.0
_NO_REPLICA: Final = "NOGOODSLAVE"
_NOT_COORDINATED: Final = ("wrong number of arguments", "syntax error", "Unrecognized", "unknown")

Report = Callable[[str], None]
"""Reports the progress to a person."""


class SwitchedOver(Struct, frozen=True):
    """The former primary and the new one; durations in seconds. `paused_s` is None where the primary itself paused."""

    former: str
    primary: str
    config_epoch: int
    took_s: float = field(name="took_seconds")
    paused_s: float | None = field(default=None, name="paused_seconds")


class GivenUp(Unavailable):
    """Sentinel has given up the failover: nothing was changed."""


def does_not_coordinate(error: str) -> bool:
    """Return whether a sentinel or primary refuses the option COORDINATED, which came with Valkey 9."""
    return any(text in error for text in _NOT_COORDINATED)


async def switch_over(settings: RedisSettings, to: str = "", report: Report = lambda _text: None) -> SwitchedOver:
    """Promote `to`, or the replica that Sentinel chooses.

    Raises Refused when nothing was changed, Unavailable when a failover was begun and its end is not known.
    """
    if not is_sentinel(settings.url):
        raise Refused(KIND, "[redis] url names a single server.", "A switch-over needs a replica and Sentinel.")
    address = sentinel_address_of(settings)
    sentinels = Sentinels(address)
    with contextlib.closing(sentinels):
        try:
            fence = await ask_fence(sentinels.refresh)
        except Unavailable as error:
            raise Refused(KIND, Text.of("{reason}.", reason=error), error.advice_text) from error
        key = Keys(settings.prefix).generation()
        with contextlib.closing(
            StoreObserver(address.server, key, settings.durability, sentinels, lambda: fence)
        ) as observer:
            async with watched(sentinels, fence, _WATCH_S):
                candidates = await _linked_candidates(observer, to, report)
                with contextlib.closing(_Line(sentinels, fence.primary, address.server, candidates, report)) as line:
                    async with line.preferring(to):
                        return await line.switch()


async def _linked_candidates(observer: StoreObserver, to: str, report: Report) -> Sequence[ReplicaState]:
    """Return the candidates; wait for those that have no link yet.

    A replica that Sentinel demotes meanwhile drops its clients, and answers again at once.
    """
    now, reported = asyncio.get_running_loop().time, False
    until, answers_until = now() + LINKED_WITHIN_S, now() + _ANSWERS_WITHIN_S
    while True:
        try:
            return candidates_of(await observer.read(), to)
        except NotAnswering:
            if now() >= answers_until:
                raise
        except NotLinked as error:
            answers_until = now() + _ANSWERS_WITHIN_S
            if now() >= until:
                raise
            if not reported:
                report(f"waiting until the replica {error.address} is linked")
            reported = True
        await asyncio.sleep(_POLL_S)


class _Line:
    """The line during the change: its sentinels, and connections to its data nodes."""

    def __init__(
        self,
        sentinels: Sentinels,
        primary: Primary,
        server: Endpoint,
        candidates: Sequence[ReplicaState],
        report: Report,
    ) -> None:
        self._sentinels = sentinels
        self._primary = primary
        self._server = server
        self._candidates = [candidate.address for candidate in candidates]
        self._report = report
        self._nodes: dict[str, CommandConnection] = {}
        self._now = asyncio.get_running_loop().time
        self._began = self._now()

    def close(self) -> None:
        """Close the connections."""
        for node in self._nodes.values():
            node.close()

    async def _call(self, address: str, *commands: Command) -> list[Any]:
        """Run commands at a data node; an error reply is an item of the result. Raises Unavailable."""
        if address not in self._nodes:
            host, _, port = address.rpartition(":")
            endpoint = replace(self._server, host=host, port=int(port))
            self._nodes[address] = CommandConnection(endpoint, timeout=_WITHIN_S)
        return await self._nodes[address].call(*commands)

    async def _info(self, address: str) -> Any:
        (reply,) = await self._call(address, ("INFO", "replication"))
        return value_of("INFO", reply)

    @property
    def _views(self) -> list[SentinelView]:
        return [report.view for report in self._sentinels.reports if report.view and not report.error]

    @contextlib.asynccontextmanager
    async def preferring(self, to: str) -> AsyncIterator[None]:
        """Set the first priority of a replica for the length of the block, where Sentinel has a choice."""
        priorities = {str(replica): replica.priority for view in self._views for replica in view.replicas}
        if not to or len([priority for priority in priorities.values() if priority > 0]) == 1:
            yield
            return
        before = priorities[to]
        self._report(f"priority of {to} set to {FIRST_PRIORITY}, waiting until the sentinels have read it")
        await self._set_priority(to, FIRST_PRIORITY)
        try:
            await self._until(lambda: self._prefers(to), _INFO_WITHIN_S, "the sentinels do not read the priority")
            yield
        finally:
            try:
                await self._set_priority(to, before)
            except EdgeError as error:
                self._report(f"set the priority of {to} to {before} again by hand: {error.message}")

    async def _set_priority(self, address: str, priority: int) -> None:
        # Sentinel makes a node that it reconfigures write its settings to its file: ours must be the last ones.
        replies = await self._call(
            address, ("CONFIG", "SET", "replica-priority", priority), ("CONFIG", "REWRITE"), ("ROLE",)
        )
        if isinstance(replies[0], ReplyError):
            raise _not_permitted(replies[0])

    async def _prefers(self, to: str) -> bool:
        read = [{str(replica): replica.priority for replica in view.replicas}.get(to) for view in self._views]
        return bool(read) and all(priority == FIRST_PRIORITY for priority in read)

    async def switch(self) -> SwitchedOver:
        """Demand the failover of a sentinel and wait for its end."""
        await self._until_known()
        self._began = self._now()
        error = await self._demand("COORDINATED")
        if not error:
            self._report("failover begun, the primary hands over to the replica")
            new, paused_s = await self._coordinated(), None
        elif does_not_coordinate(error):
            new, paused_s = await self._with_pause()
        else:
            raise Refused(
                KIND,
                Text.of("the sentinel refuses: {reason}.", reason=error),
                Text.of("Nothing was changed. {status}", status=_STATUS),
            )
        took_s = self._now() - self._began
        self._report(f"{new} is the primary, gateways open the store again")
        await self._until_linked(new)
        return SwitchedOver(str(self._primary), str(new), new.config_epoch, took_s, paused_s)

    async def _until_known(self) -> None:
        """Wait until every sentinel knows each replica as one, which takes ten seconds after a failover.

        A sentinel that still sees the former primary in it would demote it at once when another sentinel promotes it.
        """

        async def known() -> bool:
            return all(replica.is_replica for view in self._views for replica in view.replicas)

        if not await known():
            self._report("waiting until all sentinels have seen the last change of roles")
            await self._until(
                known, _INFO_WITHIN_S, "a sentinel still sees a primary in a replica; nothing was changed"
            )

    async def _demand(self, *option: str) -> str:
        """Demand a failover of a sentinel that knows the primary; return its error, empty when it has begun.

        A sentinel that has lost its connection to the replica, as that was restarted, connects again within a second.
        """
        until = self._now() + _CONNECTS_WITHIN_S
        while True:
            report = next(
                sentinel_report
                for sentinel_report in self._sentinels.reports
                if sentinel_report.view and not sentinel_report.error
            )
            error = await self._sentinels.demand_failover(report.address, *option)
            if not error.startswith(_NO_REPLICA) or self._now() >= until:
                return error
            await asyncio.sleep(_POLL_S)

    async def _coordinated(self) -> Primary:
        try:
            return await self._until_named(COORDINATED_WITHIN_S)
        except EdgeError:
            # The primary may still wait for the replica, with its writes paused.
            with contextlib.suppress(Unavailable):
                await self._call(str(self._primary), ("FAILOVER", "ABORT"))
            raise

    async def _with_pause(self) -> tuple[Primary, float]:
        """Change the primary while its writes are paused; return the new one and the duration of the pause.

        The former primary writes again only when nothing was changed, or as a replica: else two would take writes.
        """
        primary = str(self._primary)
        await self._pause(primary)
        began, may_write = self._now(), True
        task = asyncio.create_task(self._keep_paused(primary), name="pause")
        try:
            offset = int((await self._info(primary))["master_repl_offset"])
            await self._until(
                lambda: self._have(offset), CAUGHT_UP_WITHIN_S, "a replica does not catch up; nothing was changed"
            )
            may_write = False
            if error := await self._demand():
                may_write = True
                raise Refused(
                    KIND,
                    Text.of("the sentinel refuses: {reason}.", reason=error),
                    Text.of("Nothing was changed. {status}", status=_STATUS),
                )
            self._report("replicas have everything, failover begun")
            new = await self._until_named(PROMOTED_WITHIN_S)
            paused_s = self._now() - began
            may_write = await self._demote(primary, new)
        except GivenUp:
            may_write = True
            raise
        finally:
            task.cancel()
            await asyncio.wait((task,))
            if may_write:
                with contextlib.suppress(Unavailable):
                    await self._call(primary, ("CLIENT", "UNPAUSE"))
            else:
                self._report(f"the pause of {primary} ends in {_PAUSE_MS / 1000:g} s; what it accepts then is lost")
        return new, paused_s

    async def _pause(self, primary: str) -> None:
        """Pause the writes of the primary. Raises Refused when our user may not do that, or not demote it later."""
        # An invalid port changes nothing: it only shows whether the command is permitted.
        (demoted,) = await self._call(primary, ("REPLICAOF", self._primary.host, "-1"))
        if any(text in str(demoted) for text in ("NOPERM", "unknown command")):
            raise _not_permitted(demoted)
        (paused,) = await self._call(primary, ("CLIENT", "PAUSE", _PAUSE_MS, "WRITE"))
        if isinstance(paused, ReplyError):
            raise _not_permitted(paused)
        self._report(f"writes of {primary} paused")

    async def _keep_paused(self, primary: str) -> None:
        """Prolong the pause: should this process end, the writes continue by themselves soon."""
        while True:
            await asyncio.sleep(_PAUSE_AGAIN_S)
            with contextlib.suppress(Unavailable):
                await self._call(primary, ("CLIENT", "PAUSE", _PAUSE_MS, "WRITE"))

    async def _have(self, offset: int) -> bool:
        """Return whether each candidate has received what the primary had written."""
        try:
            infos = await asyncio.gather(*(self._info(address) for address in self._candidates))
        except Unavailable:
            return False
        return all(info["role"] == "slave" and int(info["slave_repl_offset"]) >= offset for info in infos)

    async def _demote(self, primary: str, new: Primary) -> bool:
        """Demote the former primary as Sentinel does it, and drop its clients with their paused commands.

        Sentinel could not do it before the end of the pause, as its own messages wait, and would take ten seconds more.
        A majority names the new primary already. Return False when it could not be demoted.
        """
        reason = ""

        async def demoted() -> bool:
            nonlocal reason
            try:
                (reply, *_) = await self._call(
                    primary,
                    ("REPLICAOF", new.host, new.port),
                    ("CONFIG", "REWRITE"),
                    ("CLIENT", "KILL", "TYPE", "normal"),
                    ("CLIENT", "KILL", "TYPE", "pubsub"),
                )
            except Unavailable as error:
                reason = error.message
                return False
            reason = str(reply) if isinstance(reply, ReplyError) else ""
            return not reason

        with contextlib.suppress(Unavailable):
            await self._until(demoted, _DEMOTED_WITHIN_S, "")
            return True
        self._report(f"{primary} was not made a replica ({reason}): Sentinel does it about ten seconds after the pause")
        return False

    async def _until_named(self, within_s: float) -> Primary:
        """Wait until a majority of the sentinels names a new primary."""
        asked_at = self._now()

        async def named() -> bool:
            views = self._views
            begun = any("failover_in_progress" in view.flags for view in views)
            new = self._successor()
            if not begun and new is None and self._now() - asked_at > _BEGINS_WITHIN_S:
                message = Text.of(
                    "Sentinel has given up the failover; {primary} is still the primary", primary=self._primary
                )
                raise GivenUp(message, "Work continues. Read the log of the sentinels, then try again.")
            return new is not None

        problem = Text.of("Sentinel has not named a new primary within {within_s:g} s", within_s=within_s)
        advice = Text.of(
            "The gateways continue as soon as a majority of the sentinels confirms a primary. {status}",
            status=as_text(_STATUS),
        )
        await self._until(named, within_s, problem, advice)
        return agreed(self._views) or self._primary

    def _successor(self) -> Primary | None:
        """Return the primary of a later failover, if a majority names it."""
        views = self._views
        new = agreed(views)
        if new is None or new.config_epoch <= self._primary.config_epoch or new.host == "":
            return None
        return new if sum(view.primary == new for view in views) >= max(view.majority for view in views) else None

    async def _until_linked(self, new: Primary) -> None:
        """Wait until the former primary follows the new one: the line is whole again."""
        former = str(self._primary)

        async def linked() -> bool:
            with contextlib.suppress(Unavailable):
                info = await self._info(former)
                if info["role"] == "slave" and info["master_link_status"] == "up":
                    return f"{info['master_host']}:{info['master_port']}" == str(new)
            return False

        try:
            await self._until(linked, LINKED_WITHIN_S, "")
        except Unavailable:
            self._report(f"{former} does not follow {new} yet. {_STATUS}")
        else:
            self._report(f"{former} is a replica of {new}")

    async def _until(
        self,
        condition: Callable[[], Awaitable[bool]],
        within_s: float,
        problem: str | Text,
        advice: str | Text = _STATUS,
    ) -> None:
        """Wait until a condition holds. Raises Unavailable with the problem after `within_s`."""
        until = self._now() + within_s
        while not await condition():
            if self._now() >= until:
                raise Unavailable(problem, advice)
            await asyncio.sleep(_POLL_S)


def _not_permitted(error: ReplyError) -> Refused:
    advice = "Nothing was changed. Rights of a switch-over: docs/how-to/maintenance.md"
    return Refused(KIND, Text.of("the server refuses: {reason}.", reason=error), advice)
