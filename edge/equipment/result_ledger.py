"""The ledger of the results of a device: which result is new, to which command it belongs, and which are settled.

It decides by values and does no I/O; the vendor's form of a result stays in `payload`, which it does not read.
"""

from asyncio import Lock
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from edge.equipment.result_numbers import Position

Program: TypeAlias = Mapping[str, frozenset[str]]
"""Names of what is carried out, by kind: `{"parameter_set": {"3"}}`."""

NO_PROGRAM: Program = MappingProxyType({})


def fits(commanded: Program, reported: Program) -> bool:
    """Return whether a reported program can be the commanded one: they share a name of each kind that both state."""
    return all(commanded[kind] & reported[kind] for kind in commanded.keys() & reported.keys())


def difference(commanded: Program, reported: Program) -> str:
    """Return in which programs a result differs from what was commanded."""
    kinds = [text for text in commanded.keys() & reported.keys() if not commanded[text] & reported[text]]
    named = ((text, ", ".join(sorted(reported[text])), ", ".join(sorted(commanded[text]))) for text in sorted(kinds))
    return "; ".join(f"{kind.replace('_', ' ')} {found} instead of {wanted}" for kind, found, wanted in named)


Identity: TypeAlias = tuple[str, int, datetime | None, tuple[object, ...]]

SINGLE = frozenset({"single"})

_REMEMBERED = 10_000
_WRONG_PROGRAM = "its program is not the commanded one"
_FOREIGN = "another station or spindle made it"
_EARLIER = "it was made before the start of the command"
_OTHER_FORM = "it is of another classification than the command"
_OTHER_IDENTIFIER = "its identifier is not that of the command"
_NO_IDENTIFIER = "it has no identifier"


class ReportedResult(Struct, frozen=True):
    """A result as a device reported it.

    `result_id` is its id at the device, `sequence` its number, 0 without one; `measured` are its main values.
    `command_id` is the command that its `identifier` names. `completes` are the classifications of commands that it
    answers. `frame` is the digest of a message that the device sends again until it is acknowledged, `received` the
    second at which it came; a result that was requested has no frame. `size` is that of its payload in bytes.
    `serial` identifies it while the ledger keeps it, however often it is sent.
    """

    payload: Any
    result_id: str = ""
    sequence: int = 0
    instant: datetime | None = None
    measured: tuple[object, ...] = ()
    identifier: str = ""
    command_id: str | None = None
    program: Program = NO_PROGRAM
    completes: frozenset[str] = SINGLE
    frame: str = ""
    received: float = 0.0
    is_foreign: bool = False
    size: int = 0
    serial: int = 0

    @property
    def identity(self) -> Identity:
        """Return the members of a result that are equal each time it is reported, live or requested."""
        return self.result_id, self.sequence, self.instant, self.measured

    @property
    def position(self) -> Position:
        """Return the place of the result in the order of its device."""
        return Position(self.sequence, self.instant)

    def is_after(self, before: Position) -> bool:
        """Return whether the result came after a position."""
        return self.position.is_after(before, is_live=bool(self.frame))


class ResultClaim(Struct, frozen=True):
    """What a command expects of its results; a `classification` of "" is answered by every one of them."""

    command_id: str
    program: Program = NO_PROGRAM
    classification: str = ""


class Standing(Enum):
    """The relation of a reported result to the commands and to earlier reports."""

    REPEATED = auto()
    """It was reported before."""
    OF_COMMAND = auto()
    """It answers a command, or is a part of its answer."""
    FURTHER = auto()
    """A second result under a command that has its answer."""
    UNSOLICITED = auto()
    """It belongs to no command."""


class Verdict(Struct, frozen=True):
    """The decision on a reported result; `is_owed`: a repetition is to be acknowledged at once.

    `reason` is why an unsolicited one does not count, where that is known, and `candidate` the command that waits.
    """

    standing: Standing
    command_id: str | None = None
    reason: str = ""
    is_owed: bool = False
    candidate: str | None = None


class KeptResult(Struct):
    """A result that is not durable yet; a `further` one came when its command had its answer."""

    report: ReportedResult
    command_id: str
    is_further: bool


class _Known(Struct, frozen=True):
    identifier: str
    is_live: bool


class _Sighting(Struct):
    """A frame on a connection; `acknowledged` is the second of its acknowledgement."""

    connection: int
    is_settled: bool = False
    acknowledged: float | None = None


class ResultLedger(Struct):
    """The results of one device, beyond its connections; `settling` is held while some are settled, by any of these.

    `current` is the command that occupies the device, `begun` are the started ones. `marks` maps identifiers to
    commands. `expected` takes the next result without a command, after the position of its start.
    """

    current: str | None = None
    begun: set[str] = field(default_factory=set)
    marks: dict[str, str] = field(default_factory=dict)
    expected: tuple[ResultClaim, Position] | None = None
    settling: Lock = field(default_factory=Lock)
    _claims: dict[str, ResultClaim] = field(default_factory=dict)
    _kept: dict[int, KeptResult] = field(default_factory=dict)
    _known: dict[Identity, _Known] = field(default_factory=dict)
    _places: dict[tuple[str, datetime | None], None] = field(default_factory=dict)
    _answered: dict[str, bool] = field(default_factory=dict)
    """By the commands whose results are decided whether their answer is durable."""
    _frames: dict[str, _Sighting] = field(default_factory=dict)
    _connection: int = 0
    _serial: int = 0

    def connect(self) -> None:
        """Begin a connection: frames of earlier ones may come again."""
        self._connection += 1

    def claim(self, claim: ResultClaim, mark: str = "") -> None:
        """Record what a command expects; its results have `mark` as identifier."""
        self._claims[claim.command_id] = claim
        limit_memory(self._claims)
        if mark:
            self.marks[mark] = claim.command_id
            limit_memory(self.marks)

    def judge(self, report: ReportedResult) -> Verdict:
        """Decide what a reported result is; the decision on a repeated frame is remembered."""
        if (repeated := self._repetition(report)) is not None:
            return repeated
        if report.is_foreign:
            return Verdict(Standing.UNSOLICITED, reason=_FOREIGN, candidate=self.current)
        claim, command_id = self._owner(report)
        if command_id is None:
            return self._unowned(report)
        if claim is not None and not fits(claim.program, report.program):
            reason = f"{_WRONG_PROGRAM}: {difference(claim.program, report.program)}"
            return Verdict(Standing.UNSOLICITED, reason=reason, candidate=command_id)
        has_answer = self.completes(report, command_id) and self.answer(command_id) is not None
        is_further = has_answer or command_id in self._answered
        return Verdict(Standing.FURTHER if is_further else Standing.OF_COMMAND, command_id)

    def keep(self, report: ReportedResult, command_id: str, *, is_further: bool = False) -> None:
        """Keep a result until it is durable."""
        self._serial += 1
        self._kept[self._serial] = KeptResult(replace(report, serial=self._serial), command_id, is_further)
        self._see(report)

    def renew(self, report: ReportedResult) -> None:
        """Keep the repetition of a frame in the place of the one that is kept, if any."""
        for serial, kept_result in self._kept.items():
            if kept_result.report.frame == report.frame:
                kept_result.report = replace(report, serial=serial)

    def settle(self, reports: Iterable[ReportedResult]) -> list[ReportedResult]:
        """Record results as durable: of each only its identity is remembered. Return each as it came last."""
        return [self._settle(report) for report in reports]

    def close(self, command_id: str, reports: Iterable[ReportedResult]) -> None:
        """Record which results are about to be the answer of a command: all others of it are further ones."""
        serials = {report.serial for report in reports}
        for serial, kept_result in self._kept.items():
            if kept_result.command_id == command_id:
                kept_result.is_further = serial not in serials
        self._answered[command_id] = False
        limit_memory(self._answered)

    def end(self, command_id: str) -> None:
        """Record that a command has its answer: each later result of it is a further one."""
        self.begun.discard(command_id)
        self._claims.pop(command_id, None)
        self._answered[command_id] = True
        limit_memory(self._answered)
        self.release(command_id)

    def release(self, command_id: str) -> None:
        """Stop expecting the next result for a command."""
        if self.expected and self.expected[0].command_id == command_id:
            self.expected = None

    def restore(self, report: ReportedResult) -> None:
        """Record a result that was durable before a restart: the device may send it again."""
        self._remember(report)
        if report.frame:
            self._frames[report.frame] = _Sighting(self._connection - 1, is_settled=True)

    def note(self, report: ReportedResult) -> None:
        """Record an old result that is not reported: requested again it is known, as a frame it is new."""
        self._remember(report)
        self._known[report.identity] = _Known(report.identifier, is_live=True)

    def owes(self, report: ReportedResult) -> bool:
        """Return whether a result came on this connection as a frame without an acknowledgement."""
        sighting = self._frames.get(report.frame)
        return sighting is not None and sighting.connection == self._connection and sighting.acknowledged is None

    def acknowledge(self, report: ReportedResult, at: float) -> None:
        """Record that the acknowledgement of a frame was sent at a second."""
        if (sighting := self._frames.get(report.frame)) is not None:
            sighting.acknowledged = at

    def parts(self, command_id: str) -> list[ReportedResult]:
        """Return the results of a command in the order in which they came, without further ones."""
        return [
            kept_result.report
            for kept_result in self._kept.values()
            if kept_result.command_id == command_id and not kept_result.is_further
        ]

    def results(self, command_id: str) -> list[ReportedResult]:
        """Return the results of a command in the order in which they came, with further ones."""
        return [kept_result.report for kept_result in self._kept.values() if kept_result.command_id == command_id]

    def answer(self, command_id: str) -> ReportedResult | None:
        """Return the result that answers a command; None until it has come, and when the command has its answer."""
        parts = [] if self._answered.get(command_id) else self.parts(command_id)
        return next((report for report in parts if self.completes(report, command_id)), None)

    def completes(self, report: ReportedResult, command_id: str) -> bool:
        """Return whether a result of a command answers it: one of a batch may be a part of it."""
        return self.classification(command_id) in {"", *report.completes}

    def classification(self, command_id: str) -> str:
        """Return the classification that a command expects of its answer; "" where any answers it."""
        claim = self._claims.get(command_id)
        return claim.classification if claim else ""

    def answers(self, report: ReportedResult) -> bool:
        """Return whether a result that came just now answers the command that occupies the device."""
        is_ours = self.judge(report) == Verdict(Standing.OF_COMMAND, self.current)
        return is_ours and self.completes(report, self.current or "")

    def waits(self, report: ReportedResult) -> bool:
        """Return whether a result that came just now is not durable before its command is answered."""
        is_kept = any(kept_result.report.frame == report.frame for kept_result in self._kept.values())
        return is_kept or self.judge(report).standing in {Standing.OF_COMMAND, Standing.FURTHER}

    def unsettled(self) -> Sequence[KeptResult]:
        """Return the results that are not durable yet, in the order in which they came."""
        return tuple(self._kept.values())

    def evict(self, most: int, most_bytes: int) -> None:
        """Forget the oldest results beyond these limits, but never the newest: the device has to report them again."""
        size = sum(kept_result.report.size for kept_result in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > most or size > most_bytes):
            size -= self._kept.pop(next(iter(self._kept))).report.size

    def is_taken(self, report: ReportedResult) -> bool:
        """Return whether another result that is durable has the same id and instant."""
        return (report.result_id, report.instant) in self._places

    def result_ids(self) -> set[str]:
        """Return the ids of the results that are kept or durable."""
        return {result_id for result_id, *_ in self._known} | {
            kept_result.report.result_id for kept_result in self._kept.values()
        }

    def _settle(self, report: ReportedResult) -> ReportedResult:
        kept_result = self._kept.pop(report.serial, None)
        if kept_result is None:
            self._see(report)
        last = kept_result.report if kept_result else report
        self._remember(last)
        if (sighting := self._frames.get(last.frame)) is not None:
            sighting.is_settled = True
        return last

    def _owner(self, report: ReportedResult) -> tuple[ResultClaim | None, str | None]:
        if report.command_id is not None:
            return self._claims.get(report.command_id), report.command_id
        expectation = self._expectation(report)
        if expectation is None or not report.is_after(expectation[1]):
            return None, None
        claim, _ = expectation
        # A single result is at least a part of what a command expects.
        is_expected = report.completes >= SINGLE or claim.classification in {"", *report.completes}
        return (claim, claim.command_id) if is_expected else (None, None)

    def _expectation(self, report: ReportedResult) -> tuple[ResultClaim, Position] | None:
        """Return what takes the next result: after its answer it takes none, but those before that may come later."""
        if self.expected is None or (answer := self.answer(self.expected[0].command_id)) is None:
            return self.expected
        return None if replace(report, frame="").is_after(answer.position) else self.expected

    def _unowned(self, report: ReportedResult) -> Verdict:
        """Return the verdict on a result of no command, with the reason why it is not that of the one at work."""
        if (expectation := self._expectation(report)) is not None:
            claim, before = expectation
            reason = _OTHER_FORM if report.is_after(before) else _EARLIER
            return Verdict(Standing.UNSOLICITED, reason=reason, candidate=claim.command_id)
        if self.current is not None and report.frame:
            reason = _OTHER_IDENTIFIER if report.identifier else _NO_IDENTIFIER
            return Verdict(Standing.UNSOLICITED, reason=reason, candidate=self.current)
        return Verdict(Standing.UNSOLICITED)

    def _repetition(self, report: ReportedResult) -> Verdict | None:
        if report.frame:
            return self._repeated_frame(report)
        same = (
            kept_result.report for kept_result in self._kept.values() if kept_result.report.identity == report.identity
        )
        settled = self._known.get(report.identity)
        known = next((_known_of(earlier) for earlier in same), settled)
        if known is None or not self._is_same(report, known):
            return None
        return Verdict(Standing.REPEATED, is_owed=known is settled)

    def _repeated_frame(self, report: ReportedResult) -> Verdict | None:
        """Return the verdict on a frame that was sent before the device can have seen its acknowledgement."""
        sighting = self._frames.get(report.frame)
        if sighting is None:
            return self._requested_before(report)
        is_earlier = sighting.connection != self._connection
        if not is_earlier and sighting.acknowledged is not None and report.received > sighting.acknowledged:
            return None
        if is_earlier:
            sighting.connection, sighting.acknowledged = self._connection, None
        return Verdict(Standing.REPEATED, is_owed=sighting.is_settled and sighting.acknowledged is None)

    def _requested_before(self, report: ReportedResult) -> Verdict | None:
        """Return the verdict on the first frame of a result that was requested before it came by itself."""
        is_unnamed = not report.sequence and report.instant is None
        for serial, kept_result in self._kept.items():
            is_same = (
                kept_result.report.identity == report.identity and kept_result.report.identifier == report.identifier
            )
            if is_same and not kept_result.report.frame and (report.identifier or not is_unnamed):
                self._frames[report.frame] = _Sighting(self._connection)
                kept_result.report = replace(report, serial=serial)
                return Verdict(Standing.REPEATED)
        known = self._known.get(report.identity)
        if is_unnamed or known is None or known.is_live or not self._is_same(report, known):
            return None
        self._known[report.identity] = _Known(known.identifier, is_live=True)
        self._frames[report.frame] = _Sighting(self._connection, is_settled=True)
        return Verdict(Standing.REPEATED, is_owed=True)

    def _is_same(self, report: ReportedResult, known: _Known) -> bool:
        """Return whether a result of known identity is the known one: an open command keeps its identifier."""
        if report.identifier == known.identifier:
            return True
        is_open = report.command_id is not None and report.command_id in self._claims
        return not is_open and not (report.identifier and known.identifier)

    def _remember(self, report: ReportedResult) -> None:
        self._known.pop(report.identity, None)
        self._known[report.identity] = _known_of(report)
        self._places[report.result_id, report.instant] = None
        limit_memory(self._known)
        limit_memory(self._places)

    def _see(self, report: ReportedResult) -> None:
        if not report.frame:
            return
        # The device has moved on: it has seen the acknowledgements of what it sent before.
        for frame, sighting in list(self._frames.items()):
            seen = sighting.acknowledged is not None and sighting.acknowledged < report.received
            if sighting.is_settled and (seen or sighting.connection != self._connection):
                del self._frames[frame]
        self._frames[report.frame] = _Sighting(self._connection)
        limit_memory(self._frames)


def _known_of(report: ReportedResult) -> _Known:
    return _Known(report.identifier, is_live=bool(report.frame))


def limit_memory(memory: dict[Any, Any], most: int = _REMEMBERED) -> None:
    """Drop the oldest entries of a memory beyond `most`."""
    while len(memory) > most:
        del memory[next(iter(memory))]
