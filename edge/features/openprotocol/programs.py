"""Parameter sets and jobs of an Open Protocol controller: what a command names, checked before the tool is touched."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import structlog

from edge.features.openprotocol.conversion import number_of
from edge.features.openprotocol.protocol.jobs import parse_job
from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message, revisions_of
from edge.features.openprotocol.protocol.session import OpenProtocolSession
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.station.equipment import Command

_log = structlog.get_logger(__name__)

_LISTED = 20
"""The most numbers in the reason of a refusal."""

_NAMED = 50
"""The most parameter sets and jobs whose names are asked for: each takes one request."""


_T = TypeVar("_T")


class RunExchange(Protocol):
    """Runs an exchange when it is its turn."""

    async def __call__(self, exchange: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of an exchange; it may be repeated."""
        ...


async def _at_once(exchange: Callable[[], Awaitable[_T]]) -> _T:
    return await exchange()


class ParameterSets:
    """The numbers of the parameter sets and jobs on one connection; empty where the controller cannot list them."""

    def __init__(self, session: OpenProtocolSession) -> None:
        self._session = session
        self._parameter_sets: tuple[int, ...] = ()
        self._jobs: tuple[int, ...] = ()
        self._notes: dict[tuple[str, int], str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter sets and the jobs, as people name them."""
        numbers = [("parameter set", index) for index in self._parameter_sets] + [("job", job) for job in self._jobs]
        return tuple(f"{kind} {number}{self._notes.get((kind, number), '')}" for kind, number in numbers)

    async def read(self, run: RunExchange = _at_once) -> None:
        """Read both lists, and the names in them, each by `run`; a controller that declines has none.

        Raises Unavailable.
        """
        await self._read_lists(run)
        await self._note("parameter set", self._parameter_sets, self._describe_parameter_set, run)
        await self._note("job", self._jobs, self._describe_job, run)

    async def _read_lists(self, run: RunExchange = _at_once) -> None:
        sets = partial(self._list, Mid.PARAMETER_SETS, Mid.PARAMETER_SETS_REPLY)
        self._parameter_sets = await run(sets)
        self._jobs = await run(partial(self._list, Mid.JOBS, Mid.JOBS_REPLY))

    async def _note(
        self, kind: str, numbers: Sequence[int], describe: Callable[[int], Awaitable[str | None]], run: RunExchange
    ) -> None:
        """Read the names that are not known yet, until the controller declines or does not answer."""
        unknown = [index for index in numbers if (kind, index) not in self._notes]
        for number in unknown[: max(0, _NAMED - len(self._notes))]:
            try:
                note = await run(partial(describe, number))
            except Refused as refusal:
                _log.info("program not described", program=f"{kind} {number}", reason=refusal.message)
                return
            if note is None:
                return
            self._notes[kind, number] = note

    async def _describe_parameter_set(self, number: int) -> str | None:
        request = new_message(Mid.PARAMETER_SET, id=number)
        answer = await self._session.inquire(request, {Mid.PARAMETER_SET_REPLY})
        name = parse_message(answer)["name"] if answer else None
        return None if name is None else f" ({name})" if name else ""

    async def _describe_job(self, number: int) -> str | None:
        answers = {Mid.JOB_REPLY}
        answer = await self._session.inquire_newest(Mid.JOB, revisions_of(Mid.JOB), answers=answers, id=number)
        if answer is None:
            return None
        job = parse_job(answer)
        steps = ", ".join(f"{step.batch_size} x {step.parameter_set}" for step in job["steps"][:_LISTED])
        noted = ": ".join(filter(None, (job["name"], steps)))
        return f" ({noted})" if noted else ""

    async def check(self, command: Command) -> None:
        """Raise Refused when the controller does not list the parameter set or the job that a command names.

        Lists that are not read yet prevent nothing.
        """
        if self._lacking(command):
            # They may have been programmed since the connection was opened.
            await self._read_lists()
        if reason := self._lacking(command):
            raise Refused("device", reason)

    async def explain(self, command: Command) -> None:
        """Raise Refused with the parameter sets and jobs that there are, when a declined command names another one."""
        await self._read_lists()
        if reason := self._lacking(command):
            raise Refused("device", reason)

    def _lacking(self, command: Command) -> Text | None:
        for name, numbers in (("parameter_set", self._parameter_sets), ("job", self._jobs)):
            wanted = number_of(command, name)
            if wanted is not None and numbers and wanted not in numbers:
                known = ", ".join(map(str, numbers[:_LISTED]))
                if name == "job":
                    return Text.of("the controller has no job {number}; it has {known}", number=wanted, known=known)
                return Text.of(
                    "the controller has no parameter set {number}; it has {known}", number=wanted, known=known
                )
        return None

    async def _list(self, mid: Mid, reply: Mid) -> tuple[int, ...]:
        answer = await self._session.inquire_newest(mid, revisions_of(reply), answers={reply})
        try:
            numbers = parse_message(answer)["ids"] if answer else ()
        except Refused as refusal:
            _log.info("list of programs unreadable", reason=refusal.message)
            return ()
        return tuple(number for number in numbers if number)
