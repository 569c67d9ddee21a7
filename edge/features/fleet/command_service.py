"""Executes signed commands of administrators: each once, with a result that survives a restart."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import structlog
from msgspec import Struct

from edge.access.audit_trail import RecordAudit
from edge.features.fleet import store as fleet
from edge.features.fleet.allowed_commands import (
    CLOCK_S,
    LONGEST_S,
    UPGRADE,
    Admitted,
    FleetPolicy,
    NotAuthentic,
    NotForUs,
    Refusal,
    RefusedCommand,
    admit,
)
from edge.features.fleet.signature import FleetCommand, FleetResult, FleetState, PublicKey
from edge.foundation.errors import EdgeError
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle, RateLimit
from edge.model.audit import AuditRecord
from edge.store.background import RETRY_INTERVAL_S, retry_while_unavailable
from edge.store.client import Store

logger = structlog.get_logger(__name__)

MOST_OUTPUT = 60_000
"""The limit of an output in characters; the rest is cut."""
_RESTART = "restart"
_ENDING = frozenset({_RESTART, UPGRADE})
"""Commands that end the process."""
_MOST_REFUSALS_AN_HOUR = 60
_LIMITED = frozenset({Refusal.REVOKED_KEY, Refusal.EXPIRED})
"""Refusals that an attacker without a valid key can cause: by a stolen key, or by old commands."""

Execute = Callable[[FleetCommand, str, str], Awaitable[str]]
"""Executes a command of a person and returns its output; the text is the signed one. Raises EdgeError."""
Follow = Callable[[str], Awaitable[str]]
"""Waits for the end of an upgrade with the id of its command and returns its output. Raises EdgeError."""
LoadKeys = Callable[[], Awaitable[Mapping[str, PublicKey]]]


class FleetAnswer(Struct, frozen=True):
    """The result of a command with its id, to be sent to its sender."""

    id: str
    result: FleetResult


class FleetService:
    """Admits and executes the commands for one component, one at a time."""

    def __init__(
        self,
        store: Store,
        policy: FleetPolicy,
        load_keys: LoadKeys,
        execute: Execute,
        clock: Clock,
        record: RecordAudit,
        retry_s: float = RETRY_INTERVAL_S,
    ) -> None:
        self._store = store
        self._policy = policy
        self._load_keys = load_keys
        self._execute = execute
        self._clock = clock
        self._record = record
        self._retry_s = retry_s
        self._turn = asyncio.Lock()
        self._faults = LogThrottle(logger)
        self._refusals = RateLimit(_MOST_REFUSALS_AN_HOUR, 3600)

    async def handle(self, text: str, source: str) -> FleetAnswer | None:
        """Return the result of a command, None for one without an answer. Raises Unavailable.

        A command that comes again gets the result of the first time: brokers deliver more than once.
        """
        match admit(text, self._policy, await self._load_keys(), self._clock() // 1000):
            case NotForUs():
                return None
            case NotAuthentic(reason, kid):
                # Not in the audit trail: a flood of such texts would displace the records.
                self._faults.warning("fleet command not authentic", reason, reason=reason, kid=kid, source=source)
                return None
            case RefusedCommand(command, key, refusal, reason):
                if refusal in _LIMITED and not self._refusals.try_acquire():
                    # Each refusal takes memory of the store for a week, and a place in the audit trail.
                    self._faults.warning(
                        "fleet command refused", refusal.value, reason=reason, kid=key.kid, source=source
                    )
                    return None
                refused = self._result(command, FleetState.REFUSED, reason=f"{refusal.value}: {reason}")
                return await self._refuse(command, key, refused, source)
            case Admitted(command, key):
                async with self._turn:
                    return await self._run(command, key, text, source)

    async def recover(self) -> list[FleetAnswer]:
        """Write the results of the commands that a former process had begun. Raises Unavailable.

        Upgrades are left to `follow_upgrades`: they continue.
        """
        answers = []
        for id, begun in (await self._begun_before()).items():
            if begun.command == UPGRADE:
                continue
            is_done = begun.command == _RESTART
            state = FleetState.SUCCESSFUL if is_done else FleetState.INTERRUPTED
            reason = "" if is_done else "the component ended before the command did"
            result = msgspec.structs.replace(begun, state=state, at=self._clock(), reason=reason)
            await self._store.commit(fleet.finish(self._store.keys, id, result))
            answers.append(FleetAnswer(id, result))
        return answers

    async def follow_upgrades(self, follow: Follow) -> list[FleetAnswer]:
        """Wait for the upgrades that a former process had begun and write their results. Raises Unavailable."""
        answers = []
        for id, begun in (await self._begun_before()).items():
            if begun.command != UPGRADE:
                continue
            try:
                ended = msgspec.structs.replace(begun, state=FleetState.SUCCESSFUL, output=await follow(id))
            except EdgeError as error:
                ended = msgspec.structs.replace(begun, state=FleetState.FAILED, reason=error.message)
            result = msgspec.structs.replace(ended, at=self._clock(), output=ended.output[:MOST_OUTPUT])
            await self._store.commit(fleet.finish(self._store.keys, id, result))
            answers.append(FleetAnswer(id, result))
        return answers

    async def _begun_before(self) -> Mapping[str, FleetResult]:
        # In its turn: no command of this process is executing.
        async with self._turn:
            return await fleet.load_executing(self._store, self._policy.component)

    async def _refuse(
        self, command: FleetCommand, key: PublicKey, result: FleetResult, source: str
    ) -> FleetAnswer | None:
        if await fleet.refuse(self._store, command.jti, _mark(command, key), result, self._remember_ms(command)):
            self._audit(command, _name(key), result.reason, source)
        # The result of a command of this id that was executed stays: an old or stolen key must not replace it.
        return await self._known(command.jti)

    async def _run(self, command: FleetCommand, key: PublicKey, text: str, source: str) -> FleetAnswer | None:
        begun, who = self._result(command, FleetState.EXECUTING), _name(key)
        if not await fleet.begin(self._store, command.jti, _mark(command, key), begun, self._remember_ms(command)):
            return await self._known(command.jti)
        if command.cmd in _ENDING:
            # The process ends in between: the result is written by its successor.
            self._audit(command, who, "Good", source)
        try:
            output = await self._execute(command, text, who)
            result = self._result(command, FleetState.SUCCESSFUL, output=output[:MOST_OUTPUT])
        except EdgeError as error:
            result = self._result(command, FleetState.FAILED, reason=error.message)
        if command.cmd == _RESTART and result.state is FleetState.SUCCESSFUL:
            return FleetAnswer(command.jti, begun)
        if command.cmd not in _ENDING or result.reason:
            self._audit(command, who, result.reason or "Good", source)
        finish = functools.partial(self._store.commit, fleet.finish(self._store.keys, command.jti, result))
        # An outage now must not lose the result: the command is not executed again.
        await retry_while_unavailable("fleet result", finish, self._retry_s)
        return FleetAnswer(command.jti, result)

    async def _known(self, id: str) -> FleetAnswer | None:
        fleet_result = (await fleet.load_results(self._store, id)).get(self._policy.component)
        return FleetAnswer(id, fleet_result) if fleet_result else None

    def _result(self, command: FleetCommand, state: FleetState, reason: str = "", output: str = "") -> FleetResult:
        return FleetResult(
            state=state,
            at=self._clock(),
            component=self._policy.component,
            command=command.cmd[:80],
            reason=reason,
            output=output,
        )

    def _remember_ms(self, command: FleetCommand) -> int:
        """Return how long an id is remembered: until the command has expired by every accepted clock.

        That is at least its whole lifetime: our clock may be ahead now, and be set right later. The sender chooses the
        instants, so that the result is bounded.
        """
        left_s = max(command.exp - self._clock() // 1000, command.exp - command.iat, 0)
        return (min(left_s, LONGEST_S + CLOCK_S) + 2 * CLOCK_S) * 1000

    def _audit(self, command: FleetCommand, who: str, status: str, source: str) -> None:
        record = AuditRecord(
            at=self._clock(),
            kind="fleet.call",
            instance=self._policy.component,
            user=who,
            action=command.cmd,
            subject=" ".join(command.args),
            status=status,
            comment=command.jti,
            address=source,
        )
        self._record(record)


def _name(key: PublicKey) -> str:
    return key.name or key.kid


def _mark(command: FleetCommand, key: PublicKey) -> str:
    """Return by what a command is remembered: the holder of a revoked key must not use up the id of another's."""
    return f"{command.jti}.{key.kid}"
