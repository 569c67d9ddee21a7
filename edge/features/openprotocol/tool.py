"""The tool of an Open Protocol controller: prepared for a command, enabled, and disabled again."""

from datetime import datetime, timedelta

import structlog

from edge.features.openprotocol.conversion import identifier_of, is_batch, number_of
from edge.features.openprotocol.leased_equipment import ConnectionLease
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Decline, Mid, new_message, parse_message, revisions_of
from edge.features.openprotocol.protocol.session import DeclinedError, OpenProtocolSession, PermitRequest
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.station.equipment import Command

_CLOCK_TOLERANCE = timedelta(seconds=2)

_BEGINS = frozenset(
    {
        Mid.SELECT_PARAMETER_SET,
        Mid.SET_BATCH_SIZE,
        Mid.RESET_BATCH,
        Mid.SELECT_JOB,
        Mid.RESTART_JOB,
        Mid.ENABLE_TOOL,
        Mid.IDENTIFIER,
    }
)
_ENDS = frozenset({Mid.DISABLE_TOOL, Mid.ABORT_JOB})

_log = structlog.get_logger(__name__)


def lease_checker(lease: ConnectionLease) -> PermitRequest:
    """Return what holds back the messages to the tool, while or because another gateway may work with it.

    A gateway that was frozen has its connection still, and the next one works on a connection of its own.
    """

    async def permit(message: MidFrame) -> None:
        if message.mid in _BEGINS:
            await lease.ensure()
        elif message.mid in _ENDS:
            await lease.refuse_if_lost()

    return permit


class TighteningTool:
    """One tool; without `locks`, another system enables and disables it.

    Every call raises Refused when the controller declines it, Unavailable when the connection is lost.
    """

    def __init__(self, session: OpenProtocolSession, *, correlation: str, locks: bool) -> None:
        self._session = session
        self._correlation = correlation
        self._locks = locks
        self.is_enabled = False
        """Whether we enabled it last."""
        self._is_disabled = False
        """Whether the controller has accepted on this connection that we disabled it last."""

    async def prepare(self, command: Command) -> str:
        """Disable the tool and select what a command names: parameter set or job, batch size, identifier.

        Return the identifier that the controller has accepted; with the correlation "next" it may decline one.
        """
        await self.disable()
        parameter_set, job = number_of(command, "parameter_set"), number_of(command, "job")
        if parameter_set is not None:
            await self._session.request(new_message(Mid.SELECT_PARAMETER_SET, id=parameter_set))
        if job is not None:
            await self._select_job(job)
        if (size := number_of(command, "batch_size")) is not None:
            await self._session.request(new_message(Mid.SET_BATCH_SIZE, id=parameter_set or 0, size=size))
        if is_batch(command) and parameter_set is not None:
            # A batch that was interrupted would count on. Where the message is not known, the selection resets it.
            await self._session.inquire(new_message(Mid.RESET_BATCH, id=parameter_set))
        identifier = identifier_of(command, self._correlation)
        if not identifier:
            return ""
        try:
            await self._session.request(new_message(Mid.IDENTIFIER, identifier=identifier))
        except DeclinedError as declined:
            if self._correlation == "mark":
                raise Refused(
                    "device",
                    Text.of("the identifier: {declined}", declined=declined),
                    'Set correlation = "next".',
                ) from declined
            _log.info("identifier declined", command=command.command_id, reason=declined.message)
            return ""
        return identifier

    async def _select_job(self, job: int) -> None:
        try:
            await self._session.negotiate(Mid.SELECT_JOB, revisions_of(Mid.SELECT_JOB), id=job)
        except DeclinedError as declined:
            if declined.error != Decline.JOB_NOT_SET:
                raise
            # It runs since a command that was interrupted, and would count on.
            await self._session.negotiate(Mid.RESTART_JOB, revisions_of(Mid.RESTART_JOB), id=job)
            _log.info("job restarted", number=job)

    async def read(self) -> str:
        """Return the serial number of the tool; empty where the controller does not report it."""
        answer = await self._session.inquire(MidFrame(Mid.TOOL), {Mid.TOOL_REPLY})
        try:
            return (parse_message(answer)["serial"] or "") if answer else ""
        except Refused:
            return ""

    async def acknowledge_alarm(self) -> None:
        """Acknowledge the alarm of the controller, where it takes that; its cause may keep it active."""
        try:
            await self._session.request(MidFrame(Mid.ACKNOWLEDGE_ALARM))
        except DeclinedError as declined:
            _log.info("alarm not acknowledged", reason=declined.message)

    async def enable(self) -> None:
        """Enable the tool: from now on the operator can trigger it."""
        if self._locks:
            self._is_disabled = False
            await self._session.request(MidFrame(Mid.ENABLE_TOOL))
            self.is_enabled = True

    async def disable(self) -> None:
        """Disable the tool."""
        if self._locks:
            # The controller may report the lock before it accepts the message.
            was_enabled, self.is_enabled = self.is_enabled, False
            try:
                await self._session.request(MidFrame(Mid.DISABLE_TOOL))
            except Refused:
                self.is_enabled = was_enabled
                raise
            self._is_disabled = True

    async def rest(self) -> None:
        """Disable the tool, unless the controller has accepted that since we enabled it."""
        if not self._is_disabled:
            await self.disable()

    async def release(self) -> None:
        """Disable the tool after a result or an alarm; a refusal is logged, and the device is not at rest then."""
        try:
            await self.rest()
        except Refused as refusal:
            _log.info("tool not disabled after its command", reason=refusal.message)

    async def make_safe(self, command: Command) -> None:
        """Abort the job of a command and disable the tool; raises Refused when the tool may still be enabled."""
        not_aborted = ""
        if number_of(command, "job") is not None:
            try:
                await self._session.request(MidFrame(Mid.ABORT_JOB))
            except DeclinedError as declined:
                if declined.error != Decline.NO_JOB_RUNS:
                    not_aborted = declined.message
        try:
            await self.disable()
        except Refused as refusal:
            raise Refused("device", Text.of("the tool may still be enabled: {refusal}", refusal=refusal)) from refusal
        if not_aborted and not self._locks:
            # Without the lock nothing else stops the job.
            raise Refused("device", Text.of("the job may still run: {not_aborted}", not_aborted=not_aborted))
        if not_aborted:
            _log.warning("stop step declined", command=command.command_id, reason=not_aborted)

    async def set_clock(self, now: datetime) -> None:
        """Set the clock of the controller to the local time `now` if it differs; a refusal is logged."""
        try:
            answer = await self._session.inquire(MidFrame(Mid.TIME), {Mid.TIME_REPLY})
            if answer is None:
                _log.warning("controller clock not set", reason="the controller does not report its time")
                return
            found = parse_message(answer)["time"]
            if found is None or abs(found - now) > _CLOCK_TOLERANCE:
                await self._session.inquire(new_message(Mid.SET_TIME, time=now))
                _log.info("controller clock set", before=str(found))
        except Refused as refusal:
            _log.warning("controller clock not set", reason=refusal.message)
