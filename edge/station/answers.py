"""Applies the answers and events of equipment to the runs they belong to."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from typing import Any, TypeGuard

import msgspec
import structlog
from msgspec.structs import replace

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.listeners import notify
from edge.foundation.rate_limit import LogThrottle, RateLimit
from edge.foundation.text import Text, as_text
from edge.model.acceptance import MAX_BYTES, MAX_TEXT_LENGTH, validate_id
from edge.model.equipment_traffic import TrafficKind
from edge.ports.result_trace import (
    MOST_LEVELS,
    RESULTS_MEMBER,
    NoResultFiles,
    ResultFiles,
    lost_in,
    may_hold_files,
    stored_in,
)
from edge.sfc.identifiers import CommandKey, parse_command_id
from edge.sfc.run import ActionState, find_command, is_outstanding, is_too_late, outstanding, results_of
from edge.sfc.signal import Answer, Begun, Ignored, IgnoredKind, Late, Phase, Unknown
from edge.station.decision import Decision, LoadedJob, NotAllowed
from edge.station.direct_commands import DirectCommands
from edge.station.equipment import (
    Begin,
    Command,
    EquipmentAnswer,
    EquipmentEvent,
    LateResult,
    NotSent,
    OutcomeUnknown,
)
from edge.station.equipment_events import EquipmentEvents, EventReply
from edge.station.equipment_watch import EquipmentStats
from edge.station.job_call import RefusalRecorder
from edge.station.own_starts import generation_of
from edge.station.runs import NoRun, Runs
from edge.station.sender import command_of, permit_start
from edge.store import dead_letters, dedupe, equipment_memory
from edge.store.client import Store
from edge.store.commit import Commit, Stale, join
from edge.store.dead_letters import Letter, LetterKind, RefusedMessage
from edge.store.dedupe import equipment_sender, had_result, load_scope_of_removed, was_taken
from edge.store.lease_watch import LIFETIME_S
from edge.store.runs import active_jobs


def signal_of(answer: EquipmentAnswer | OutcomeUnknown) -> Answer | Unknown:
    """Return the signal of an answer; a result that exceeds the limit is a failure."""
    if isinstance(answer, OutcomeUnknown):
        return Unknown(answer.command_id, _bounded(answer.reason))
    try:
        data, error = kept_data(answer.data), answer.error and _bounded(answer.error)
    except Refused as refusal:
        too_large = Text.of("its result is too large: {reason}", reason=refusal)
        data, error = None, answer.error or too_large
    return Answer(answer.command_id, ok=error is None, data=data, error=error)


def _bounded(stated: str | Text) -> str | Text:
    """Return a reason, cut where it is too long."""
    text = str(stated)
    return stated if len(text) <= MAX_TEXT_LENGTH else text[:MAX_TEXT_LENGTH]


def is_result(signal: Answer | Unknown) -> TypeGuard[Answer]:
    """Return whether an answer contains a result: without one it confirms the stop of its command."""
    return isinstance(signal, Answer) and signal.error is None and signal.data is not None


def error_of(answer: EquipmentAnswer | OutcomeUnknown) -> str | Text | None:
    """Return why the equipment did not carry out a command, or may not have; None when it did."""
    return answer.reason if isinstance(answer, OutcomeUnknown) else answer.error


def kept_data(data: object) -> Any:
    """Return data as the store returns them: with a cached run and a loaded one the decision is the same.

    Raises Refused(`too_large`): with each change of the job, its results go to Redis, to the MES and to OPC UA clients.
    """
    written = msgspec.json.encode(data)
    if len(written) > MAX_BYTES:
        problem = Text.of(
            "{count} bytes of JSON, where {max_bytes} can be kept", count=len(written), max_bytes=MAX_BYTES
        )
        raise Refused("too_large", problem, "Send what recipe and MES need, and where the rest is to be found.")
    return msgspec.json.decode(written)


def holds_result(data: object, result_id: str, levels: int = MOST_LEVELS) -> bool:
    """Return whether the data of an answer are the result with an id, or hold it."""
    if not isinstance(data, Mapping) or not levels:
        return False
    parts = data.get(RESULTS_MEMBER)
    held = parts.values() if isinstance(parts, Mapping) else ()
    return data.get("result_id") == result_id or any(holds_result(value, result_id, levels - 1) for value in held)


def begun_again(found: str, own: str) -> Begin:
    """Return the answer for a start that is marked already: LOST where the mark is of another generation than ours."""
    return Begin.AGAIN if generation_of(found) == generation_of(own) else Begin.LOST


async def open_commands_of_jobs(runs: Runs, scopes: Collection[str], type_ids: Collection[str]) -> list[Command]:
    """Return the commands of these types that wait for an answer in the store, in the order of their decisions.

    Those whose time is over are left out: the timers of their runs end them.
    """
    found, now = list[tuple[int, Command]](), runs.clock()
    for job_id in await active_jobs(runs.store):
        loaded = await runs.load_readable(job_id)
        if loaded is None or loaded.job.scope not in scopes:
            continue
        queued = {(outgoing.phase, outgoing.command_id) for outgoing in runs.outbox.unsent(job_id)}
        for item in loaded.unanswered():
            association = outstanding(loaded.stored.run, item.command_id)
            if association and item.type_id in type_ids and not is_too_late(loaded.stored.run, association, now):
                command = command_of(loaded, item.phase, association, item.step, runs.own_starts, offered_again=True)
                is_queued = (item.phase, item.command_id) in queued
                found.append((association.armed_at or 0, replace(command, queued=is_queued)))
    return [command for _, command in sorted(found, key=lambda row: row[0])]


def in_turn(commands: Iterable[Command]) -> list[Command]:
    """Return open commands with the begun starts first, then the resets, each kind in its order.

    Equipment may work for a begun start: another one before it would take its tool.
    """
    return sorted(commands, key=_turn)


def _turn(command: Command) -> int:
    if command.phase is Phase.START:
        return 0 if command.begun else 2
    return 1


logger = structlog.get_logger(__name__)

_LETTER_DATA = 16_384
"""The longest data of a late result in its dead letter; the run of the job holds all of it."""
_MOST_UNSOLICITED = 60
_MOST_LATE = 600
_WITHIN_S = 60.0
"""The most unsolicited answers, and answers to ended commands, that are handled in this time."""


class Answers:
    """The station as one piece of equipment sees it. The effect of a call is committed when the call returns.

    The equipment may only answer commands of `type_ids`; None allows all. `direct` has the commands without a job.
    `name` is that of the equipment, `scope` that of late results whose job is gone without a trace; "": none.
    """

    def __init__(
        self,
        store: Store,
        runs: Runs,
        dedupe_ms: int,
        type_ids: Collection[str] | None = None,
        direct: DirectCommands | None = None,
        result_files: ResultFiles | None = None,
        name: str = "",
        scope: str = "",
    ) -> None:
        self.stats = EquipmentStats()
        """Counts of the messages of the equipment."""
        self.listeners: list[Callable[[TrafficKind, Any], None]] = []
        """Called with each message between us and the equipment."""
        self._store = store
        self._recorder = RefusalRecorder(store)
        self._runs = runs
        self._dedupe_ms = dedupe_ms
        self._type_ids = type_ids
        self._direct = direct or DirectCommands(runs)
        self._result_files = result_files or NoResultFiles()
        self._scope = scope
        self._sender = equipment_sender(name)
        self._events = EquipmentEvents(runs, name, dedupe_ms, self.stats)
        self._faults = LogThrottle(logger)
        self._samples = RateLimit(_MOST_UNSOLICITED, _WITHIN_S)
        self._late_samples = RateLimit(_MOST_LATE, _WITHIN_S)
        self._own_mark = runs.own_starts.mark(store.keys.generation_id)

    async def begin(self, command_id: str) -> Begin:
        """Commit the begun mark of a command before its start is sent.

        A start that this process has marked and not sent may be sent, also after a failover. Raises NotSent when the
        mark is not confirmed, and when this process stood still meanwhile: another gateway may have taken over, and a
        person decided about the start.
        """
        clock, generation_id = self._store.own_lease.clock, self._store.keys.generation_id
        began = clock()
        try:
            if self._direct.is_waiting(command_id):
                await self._store.settle_start()
                return self._direct.begin(command_id)
            begin = await self._mark_start(command_id)
            if begin is Begin.NEW:
                await self._store.settle_start()
        except Unavailable as error:
            raise NotSent(error.text, error.advice_text) from error
        if begin is Begin.NEW and (seconds := clock() - began) >= LIFETIME_S:
            raise NotSent(Text.of("this process stood still for {seconds:.0f} s", seconds=seconds))
        if begin is Begin.NEW and self._runs.own_starts.release(command_id, generation_id):
            return begin
        if begin in {Begin.NEW, Begin.AGAIN} and self._runs.own_starts.has_left_before(command_id, generation_id):
            # Its mark was lost with the former primary.
            return Begin.LOST
        # Another call may have released it meanwhile.
        return Begin.AGAIN if begin is Begin.NEW else begin

    def now(self) -> int:
        """Return the present instant of the jobs' clock, in milliseconds since the epoch."""
        return self._runs.clock()

    async def _mark_start(self, command_id: str) -> Begin:
        """Return NEW for a start with a mark of this process that has not been sent; it is held."""
        key = parse_command_id(command_id)
        if key is None:
            return Begin.GONE
        loaded = await self._runs.get(key.job_id)
        association = find_command(loaded.stored.run, command_id) if loaded else None
        if association is not None and not association.begun:
            # First: the reply to the commit may be lost.
            self._runs.own_starts.hold(command_id)
        match await self._runs.signal(key.job_id, Begun(command_id, self._own_mark)):
            case Decision():
                return Begin.NEW
            case Ignored(kind=IgnoredKind.DUPLICATE):
                loaded = await self._runs.load(key.job_id)
                association = find_command(loaded.stored.run, command_id) if loaded else None
                if association is None:
                    return Begin.GONE
                is_open = association.state is ActionState.DISPATCHED
                if is_open and not self._runs.own_starts.may_have_left(association.begun, command_id):
                    return Begin.NEW
                return begun_again(association.begun, self._own_mark)
            case _:
                return Begin.GONE

    def withhold(self, command_id: str) -> None:
        """Record that a start did not leave although it was permitted."""
        self._runs.own_starts.withhold(command_id)

    async def permit_start(self) -> None:
        """Raise NotSent while no start may leave."""
        permit_start(self._store)

    async def admits(self, command_id: str | None) -> bool:
        """Return whether an answer to a command, or to none, is handled; else it is counted only.

        An answer that a command waits for always is. Of the others a sample is, so that they delay no job.
        """
        if command_id is not None and self._is_awaited(command_id):
            return True
        if not self._store.marks_by_sender.is_near(self._sender.id) and self._samples.try_acquire():
            return True
        if command_id is not None and await self._lacks_result(command_id):
            return True
        self.stats.record_unsolicited()
        self._faults.warning("unsolicited answer dropped", "unsolicited", equipment=self._sender.name)
        return False

    def _is_awaited(self, command_id: str) -> bool:
        """Return whether a command is known here to wait for its answer."""
        if self._direct.is_waiting(command_id):
            return True
        loaded = self._runs.cached(key.job_id) if (key := parse_command_id(command_id)) else None
        return loaded is not None and is_outstanding(loaded.stored.run, command_id)

    async def _lacks_result(self, command_id: str) -> bool:
        """Return whether a command waits in the store for its answer, or has ended without a result."""
        key = parse_command_id(command_id)
        if key is None or any(validate_id("JobOrderID", key.job_id)):
            return False
        loaded = await self._runs.load(key.job_id)
        if loaded is None:
            return False
        if is_outstanding(loaded.stored.run, command_id):
            return True
        results = results_of(loaded.stored.run, command_id)
        return bool(results) and all(result is None for result in results) and self._late_samples.try_acquire()

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        """Apply the answer to a command; the command id names the job, whichever instance receives the answer."""
        if self._direct.is_waiting(answer.command_id):
            answer = await self._with_stored_traces("", answer)
            if await self._direct.accept(answer, self._type_ids):
                self.stats.record_contact(self._runs.clock())
                return
        key = parse_command_id(answer.command_id)
        if key is None or any(validate_id("JobOrderID", key.job_id)):
            self._faults.warning("answer to a command that is not ours", "not ours", command=answer.command_id)
            self.stats.record_ignored()
            return
        at = self._runs.clock()
        self.stats.record_contact(at)
        cached = self._runs.cached(key.job_id)
        sent_at = cached.sent_at(answer.command_id) if cached else None
        loaded = await self._runs.get(key.job_id)
        if loaded and self._is_for_other_equipment(loaded, answer.command_id):
            event = "answer to a command of other equipment"
            self._faults.warning(event, event, job=key.job_id, command=answer.command_id)
            self.stats.record_ignored()
            return
        # A file is complete before the result refers to it.
        answer = await self._with_stored_traces(key.job_id, answer)
        signal = signal_of(answer)
        match await self._runs.signal(key.job_id, signal):
            case Decision() if isinstance(signal, Unknown):
                logger.warning("outcome unknown", job=key.job_id, command=answer.command_id, reason=str(signal.reason))
                self.stats.record_unknown(signal.reason)
            case Decision():
                error = signal.error if isinstance(signal, Answer) else None
                self.stats.record_answer(at, sent_at, error)
                self.stats.record_result(answer.data if isinstance(answer, EquipmentAnswer) else None)
                if not key.reset:
                    return
            case Ignored(IgnoredKind.LATE | IgnoredKind.ENDED, reason) if is_result(signal):
                scope = loaded.job.scope if loaded else self._scope
                await self._keep_late(_late_result(signal, scope), reason)
            case NoRun() if is_result(signal):
                await self._keep_of_removed(key.job_id, signal)
            case Ignored(IgnoredKind.FOREIGN) if is_result(signal) and _is_of_earlier_run(key, loaded):
                await self._keep_of_removed(key.job_id, signal)
            case Ignored(kind, reason):
                self._log_ignored(answer.command_id, f"{kind}: {reason}")
                self.stats.record_ignored()
            case NoRun():
                self._log_ignored(answer.command_id, "the job is gone")
                self.stats.record_ignored()
            case NotAllowed() | Stale():
                return
        await self.stopped(answer.command_id, error_of(answer) if key.reset else None)

    async def _keep_of_removed(self, job_id: str, answer: Answer) -> None:
        """Keep the result of a command whose run is gone, unless its job had this result."""
        if await was_taken(self._store, job_id, answer.command_id, answer.data):
            self._log_ignored(answer.command_id, "the job had this result and is gone")
            self.stats.record_ignored()
            return
        scope = await load_scope_of_removed(self._store, job_id) or self._scope
        await self._keep_late(_late_result(answer, scope), Text("the job is gone"))

    def _log_ignored(self, command_id: str, reason: str) -> None:
        self._faults.info("answer ignored", f"ignored {reason}", command=command_id, reason=reason)

    async def stopped(self, command_id: str, error: str | Text | None, *, is_answer: bool = True) -> None:
        """Remove a confirmed stop or reset from the safing commands; record why one was declined, also at its job.

        Without `is_answer`, none came. A stop may be declined for days: the job has the first reason, the last is kept.
        """
        if is_answer:
            self.stats.record_contact(self._runs.clock())
        if error is None:
            await self._store.commit(equipment_memory.remove_safing(self._store.keys, command_id))
            return
        reason = _bounded(error)
        self.stats.record_declined_stop(reason)
        for command in await equipment_memory.load_safing(self._store, command_id):
            if command.error == str(reason):
                continue
            logger.error("stop declined", command=command_id, phase=command.phase.value, reason=str(reason))
            await self._store.commit(
                equipment_memory.save_safing(
                    self._store.keys, replace(command, error=str(reason), error_text=as_text(reason))
                )
            )
            if command.phase is Phase.STOP and not command.error:
                # The answer to a reset is recorded at its job already.
                await self._runs.signal(
                    command.job_id, Late(command_id, error=Text.of("not stopped: {reason}", reason=reason))
                )

    async def late(self, result: LateResult) -> None:
        """Keep a result that no command waits for; a result that names a waiting command is its answer."""
        self.stats.record_contact(self._runs.clock())
        if result.command_id and not result.reason and await self.is_outstanding(result.command_id):
            await self.answer(EquipmentAnswer(result.command_id, result.data))
            return
        key = parse_command_id(result.command_id or "")
        stored = await self._keep_traces(key.job_id if key else "", result.data)
        await self._keep_late(
            msgspec.structs.replace(result, data=stored), result.reason or Text("no command waits for it")
        )

    async def _with_stored_traces(
        self, job_id: str, answer: EquipmentAnswer | OutcomeUnknown
    ) -> EquipmentAnswer | OutcomeUnknown:
        if isinstance(answer, OutcomeUnknown):
            return answer
        data = await self._keep_traces(job_id, answer.data)
        return answer if data is answer.data else msgspec.structs.replace(answer, data=data)

    async def _keep_traces(self, job_id: str, data: Any) -> Any:
        if not may_hold_files(data):
            return data
        kept = await self._result_files.keep(job_id, data)
        self.stats.record_traces(len(stored_in(kept)), lost_in(kept))
        return kept

    async def store_file(self, command_id: str, parts: AsyncGenerator[bytes, None]) -> Mapping[str, Any]:
        """Store a file of the result of a command, part by part; return the reference to it."""
        key = parse_command_id(command_id)
        reference = await self._result_files.store_file(key.job_id if key else "", parts)
        found: Mapping[str, Any] = msgspec.to_builtins(reference)
        return found

    async def _keep_late(self, result: LateResult, reason: str | Text) -> None:
        """Commit a late result once: a dead letter, and an attempt of its job, for which one with a reason is none."""
        if await dedupe.load_answer(self._store, result.source, result.key) is not None:
            self.stats.record_ignored()
            return
        key = parse_command_id(result.command_id or "")
        job_id = key.job_id if key else ""
        data = msgspec.json.encode(result.data).decode(errors="replace")
        details = {"command_id": result.command_id or "", "source": result.source, "key": result.key}
        details |= {"data": data[:_LETTER_DATA], "created_at": str(result.created_at or "")}
        letter = Letter(LetterKind.LATE, result.scope, job_id, reason, self._runs.clock(), details)
        added = dead_letters.add(self._store.keys, letter, self._runs.context.keep_letters_ms)
        commit = join((added, self._mark(result.source, result.key, "null")))
        late = Late(result.command_id or "", kept_data(result.data) if len(data) <= MAX_BYTES else None)
        is_attempt = key and not result.reason
        if not is_attempt or not isinstance(await self._runs.signal(job_id, late, also=lambda _: commit), Decision):
            await self._store.commit(commit)
        named = {"job": job_id, "command": result.command_id, "source": result.source, "reason": str(reason)}
        self._faults.warning("late result kept", f"late {reason}", **named)
        self.stats.record_late(self._runs.clock(), Text.of("{result}: {reason}", result=result.key, reason=reason))
        self.stats.record_result(result.data)

    def _is_for_other_equipment(self, loaded: LoadedJob, command_id: str) -> bool:
        """Return whether a command was sent to other equipment: its id may have been guessed."""
        run, actions = loaded.stored.run, loaded.net.actions
        return self._type_ids is not None and any(
            run.associations[key].command_id == command_id and actions[key.latest].type_id not in self._type_ids
            for key in run.open
        )

    async def event(self, event: EquipmentEvent) -> EventReply:
        """Apply an event to the job it names, else to the job that has waited longest; else discard it.

        Raises Refused(`too_large`) when its data exceed the limit.
        """
        self.stats.record_contact(self._runs.clock())
        # A curve in the data of an event is stored as that of an answer.
        data = await self._keep_traces(event.job_id or "", event.data)
        return await self._events.apply(msgspec.structs.replace(event, data=kept_data(data)))

    async def record_refusal(self, message: RefusedMessage) -> None:
        """Keep a refused message for a person to look at, and count it."""
        self.stats.record_contact(self._runs.clock())
        self.stats.record_refused(message.kind, str(message.reason))
        await self._recorder.record(message)

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> list[Command]:
        """Return the commands of these types that wait for an answer, in the store or of no job; begun starts first."""
        of_jobs = await open_commands_of_jobs(self._runs, scopes, type_ids)
        return in_turn((*self._direct.outstanding(scopes, type_ids), *of_jobs))

    async def is_outstanding(self, command_id: str) -> bool:
        """Return whether a command still waits for an answer in the store."""
        if self._direct.is_waiting(command_id):
            return True
        loaded = await self._runs.load(key.job_id) if (key := parse_command_id(command_id)) else None
        return loaded is not None and is_outstanding(loaded.stored.run, command_id)

    async def has_result(self, command_id: str, result_id: str) -> bool:
        """Return whether a result of a command is stored already: as its answer, within that, or as late."""
        key = parse_command_id(command_id)
        loaded = await self._runs.load(key.job_id) if key else None
        if key and _is_of_earlier_run(key, loaded):
            return await had_result(self._store, key.job_id, command_id, result_id)
        return loaded is not None and any(
            holds_result(value, result_id) for value in results_of(loaded.stored.run, command_id)
        )

    async def has_open_stop(self, command_id: str) -> bool:
        """Return whether the stop of a command is not confirmed yet: its result was not received before."""
        return bool(await equipment_memory.load_safing(self._store, command_id))

    async def is_disabled_elsewhere(self, place: str) -> bool:
        """Return whether another system has disabled the tool at a place."""
        return await equipment_memory.is_disabled(self._store, place)

    async def keep_disabled(self, place: str, *, disabled: bool) -> None:
        """Keep whether another system has disabled the tool at a place."""
        await equipment_memory.keep_disabled(self._store, place, self._runs.clock() if disabled else None)

    @property
    def gateway(self) -> str:
        """The name of this gateway."""
        return self._store.consumer

    async def recall(self, equipment: str) -> Mapping[str, str]:
        """Return the texts that equipment of this name has remembered; they survive the connection and a restart."""
        return await equipment_memory.load_memory(self._store, equipment)

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        """Remember these texts of equipment by their names; the others stay."""
        await equipment_memory.save_memory(self._store, equipment, texts)

    def record_repeated_start(self) -> None:
        """Count a start that the equipment may have received before."""
        self.stats.record_repeated_start()

    def report_traffic(self, what: TrafficKind, data: Any) -> None:
        """Report traffic with the equipment to its recorders."""
        notify(self.listeners, what, data)

    def _mark(self, source: str, event_id: str, answer: str) -> Commit:
        return dedupe.mark(self._store.keys, source, event_id, answer, self._dedupe_ms, self._sender)


def _late_result(answer: Answer, scope: str) -> LateResult:
    digest = hashlib.sha256(msgspec.json.encode(answer.data)).hexdigest()[:16]
    return LateResult("late answer", f"{answer.command_id} {digest}", scope, answer.data, answer.command_id)


def _is_of_earlier_run(key: CommandKey, loaded: LoadedJob | None) -> bool:
    """Return whether the run of a command is gone: its job was removed, and perhaps stored again."""
    return loaded is None or loaded.stored.run.run_id != key.run_id
