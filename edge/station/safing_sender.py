"""Delivers stops and resets until the equipment confirms them, whatever happens to job, broker or gateway."""

import time
from collections import Counter
from collections.abc import Collection, Mapping

import structlog

from edge.errors import Unavailable
from edge.instant import Clock
from edge.sfc.signal import Late, Phase
from edge.station.decision import Decision
from edge.station.equipment import Command, EquipmentPort
from edge.station.runs import Runs
from edge.store import safing
from edge.store.isolation import Isolated
from edge.store.retry import poll_store
from edge.store.safing import SafingCommand

logger = structlog.get_logger(__name__)

POLL_INTERVAL_S = 5.0
REPEAT_INTERVALS_S = (60.0, 3600.0)
"""The shortest and the longest interval between two sendings of an unconfirmed command; each doubles the one before."""


class SafingSender:
    """Sends unconfirmed stops and resets again: when their equipment connects, and at intervals while it is connected.

    `open_commands` holds them as of the last poll.
    """

    def __init__(
        self,
        runs: Runs,
        scopes: Collection[str],
        routes: Mapping[str, EquipmentPort],
        clock: Clock,
        poll_interval_s: float = POLL_INTERVAL_S,
        repeat_intervals_s: tuple[float, float] = REPEAT_INTERVALS_S,
    ) -> None:
        self.open_commands: tuple[SafingCommand, ...] = ()
        self._runs = runs
        self._store = runs.store
        self._scopes = frozenset(scopes)
        self._routes = routes
        self._poll_interval_s = poll_interval_s
        self._repeat_intervals_s = repeat_intervals_s
        self._sent_at: dict[tuple[Phase, str], float] = {}
        self._repeated: Counter[tuple[Phase, str]] = Counter()
        self._connection_counts: dict[str, int] = {}
        self._clock = clock
        self._started_at = clock()

    async def run(self) -> None:
        """Poll until cancelled."""
        await poll_store("safing", self.send_due, self._poll_interval_s)

    async def send_due(self) -> None:
        """Send each command that is due once."""
        served = [each for each in await safing.load_all(self._store) if each.scope in self._scopes]
        # The stop of a command without a job is kept before its start, and is due later.
        found = [each for each in served if not each.released_by and each.since <= self._clock()]
        for each in served:
            if each.released_by:
                await self._remove_released(each)
        self.open_commands = tuple(found)
        open_keys = {(each.phase, each.command_id) for each in found}
        self._sent_at = {key: at for key, at in self._sent_at.items() if key in open_keys}
        self._repeated = Counter({key: count for key, count in self._repeated.items() if key in open_keys})
        self._note_connections()
        for each in found:
            await self._send(each)

    async def _remove_released(self, command: SafingCommand) -> None:
        """Remove a command that an operator has released, and record it at its job and in the log of the gateway."""
        removal = safing.remove(self._store.keys, command.command_id)
        late = Late(command.command_id, error=f"stop released by {command.released_by}: {command.release_reason}")
        is_recorded = False
        with Isolated(logger, "release cannot be recorded", job=command.job_id, command=command.command_id):
            # One commit: a gateway that is killed here records and removes it after its restart.
            outcome = await self._runs.signal(command.job_id, late, also=lambda _: removal)
            is_recorded = isinstance(outcome, Decision)
        if not is_recorded:
            await self._store.commit(removal)
        equipment = self._routes.get(command.type_id)
        logger.warning(
            "stop released",
            audit="equipment.release",
            equipment=equipment.name if equipment else "",
            job=command.job_id,
            command=command.command_id,
            phase=command.phase.value,
            by=command.released_by,
            reason=command.release_reason,
        )

    def _note_connections(self) -> None:
        """Mark all commands as due whose equipment has connected since the last poll, however short it was away."""
        for equipment in {each.name: each for each in self._routes.values()}.values():
            count = equipment.connection_count
            known = self._connection_counts.setdefault(equipment.name, count)
            if count == known:
                continue
            self._connection_counts[equipment.name] = count
            for each in self.open_commands:
                if self._routes.get(each.type_id) is equipment:
                    self._sent_at[each.phase, each.command_id] = float("-inf")
                    del self._repeated[each.phase, each.command_id]

    def _interval_s(self, key: tuple[Phase, str]) -> float:
        shortest, longest = self._repeat_intervals_s
        return float(min(longest, shortest * 2.0 ** min(self._repeated[key], 16)))

    async def _send(self, command: SafingCommand) -> None:
        equipment = self._routes.get(command.type_id)
        key, now = (command.phase, command.command_id), time.monotonic()
        # A decision of this process has queued it as well: the first repetition waits for one interval.
        last = self._sent_at.setdefault(key, float("-inf") if command.since < self._started_at else now)
        if equipment is None or equipment.connected is False or now - last < self._interval_s(key):
            return
        self._sent_at[key] = now
        try:
            if command.phase is Phase.RESET:
                await equipment.reset(command_of_safing(command))
            else:
                await equipment.stop(command_of_safing(command))
        except Unavailable as error:
            logger.info("safing command delayed", command=command.command_id, reason=error.message)
            self._sent_at[key] = float("-inf")
        except Exception:  # a defect in one kind of equipment must not keep the others from being stopped
            logger.exception("safing command failed", command=command.command_id)
        else:
            if not equipment.problem:
                # Without a problem it has the command and does not confirm it: the intervals grow.
                self._repeated[key] += 1
            logger.warning(
                "safing command sent again",
                equipment=equipment.name,
                command=command.command_id,
                phase=command.phase.value,
                error=command.error,
            )


def command_of_safing(command: SafingCommand) -> Command:
    """Return the command as equipment receives it."""
    return Command(
        command_id=command.command_id,
        phase=command.phase,
        type_id=command.type_id,
        scope=command.scope,
        job_id=command.job_id,
        correlation_id=command.correlation_id,
        action=command.action,
        attempt=command.attempt,
        parameters=command.parameters,
        offered_again=True,
        causation_id=command.causation_id,
        trace=command.trace,
    )
