"""Parameter sets and jobs of an Open Protocol controller: what a command names, checked before the tool is touched."""

from typing import Any

from edge.errors import Refused
from edge.links.openprotocol_frame import MidFrame
from edge.links.openprotocol_mids import Mid, parse_message, revisions_of
from edge.links.openprotocol_session import OpenProtocolSession
from edge.southbound.openprotocol_conversion import number_of
from edge.station.equipment import Command

_LISTED = 20
"""The most numbers in the reason of a refusal."""


class ParameterSets:
    """The numbers of the parameter sets and jobs on one connection; empty where the controller cannot list them."""

    def __init__(self, session: OpenProtocolSession) -> None:
        self._session = session
        self._parameter_sets: tuple[int, ...] = ()
        self._jobs: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter sets and the jobs, as people name them."""
        sets = [f"parameter set {number}" for number in self._parameter_sets]
        return tuple(sets + [f"job {number}" for number in self._jobs])

    async def read(self) -> None:
        """Read both lists; a controller that declines has none. Raises Unavailable."""
        self._parameter_sets = await self._list(Mid.PARAMETER_SETS, Mid.PARAMETER_SETS_REPLY)
        self._jobs = await self._list(Mid.JOBS, Mid.JOBS_REPLY)

    async def check(self, command: Command) -> None:
        """Raise Refused when the controller does not list the parameter set or the job that a command names."""
        if self._lacking(command):
            # They may have been programmed since the connection was opened.
            await self.read()
        if reason := self._lacking(command):
            raise Refused("device", reason)

    def _lacking(self, command: Command) -> str:
        for name, numbers in (("parameter_set", self._parameter_sets), ("job", self._jobs)):
            wanted = number_of(command, name)
            if wanted is not None and numbers and wanted not in numbers:
                known = ", ".join(map(str, numbers[:_LISTED]))
                return f"the controller has no {name.replace('_', ' ')} {wanted}; it has {known}"
        return ""

    async def _list(self, mid: Mid, reply: Mid) -> tuple[int, ...]:
        try:
            answer = await self._ask(mid, reply)
        except Refused:
            return ()
        return tuple(each for each in answer.get("ids", ()) if each)

    async def _ask(self, mid: Mid, reply: Mid) -> dict[str, Any]:
        revisions = revisions_of(reply)
        if len(revisions) == 1:
            return parse_message(await self._session.request(MidFrame(mid), {reply}))
        return parse_message(await self._session.negotiate(mid, revisions, answers={reply}))
