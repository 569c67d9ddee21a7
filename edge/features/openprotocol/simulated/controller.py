"""A simulated tightening controller with Open Protocol: an operator triggers the tool once each time it is enabled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.jobs import JobStep
from edge.features.openprotocol.protocol.mids import TOOL_LOCKED_RELAY, Decline, Mid
from edge.features.openprotocol.protocol.trace import ANGLE, TORQUE
from edge.features.openprotocol.simulated.messages import HIGHEST, curve_of, handlers_of, plot_of, spindles_of
from edge.features.openprotocol.simulated.server import DeclineError, OpenProtocolServer
from edge.foundation.task_group import background_task

WORK_SECONDS = 0.2
AWAY_SECONDS = 0.5
JAMMED = "E851"
"""The code of the alarm of a jammed spindle."""

PARAMETER_SETS: Mapping[int, float] = MappingProxyType({1: 10.0, 2: 80.0, 3: 85.0, 4: 120.0})
"""The number of each parameter set, with its torque in N·m."""

JOBS: Mapping[int, int] = MappingProxyType({1: 3, 2: 2})
"""The number of each job, with that of its parameter set."""

_OK_FACTOR, _NOK_FACTOR, _TOLERANCE = 1.0024, 1.2, 0.1
_OK, _HIGH = 1, 2
_BATCH_RUNS, _BATCH_OK, _BATCH_NOT_USED = 0, 1, 2
Now = Callable[[], datetime]
"""Returns the local time, without a zone."""


def _local_now() -> datetime:
    return datetime.now().astimezone().replace(microsecond=0, tzinfo=None)


class Tightening(Struct, frozen=True):
    """A tightening at work: what its result will hold."""

    identifier: str
    parameter_set: int
    job: int


class OpenProtocolFault(Enum):
    """The fault of the next tightening."""

    NONE = "none"
    REFUSED = "refused"
    """The controller does not enable the tool."""
    SILENT = "silent"
    """The operator never triggers the tool."""
    NOK = "nok"
    """The torque is beyond the limit."""
    NOK_ONCE = "nok-once"
    """The torque of the next tightening is beyond the limit, those after it are good."""
    ALARM = "alarm"
    """The controller reports an alarm instead of a result, and disables the tool."""
    UNREPORTED = "unreported"
    """The controller stores the result and does not send it."""
    DISCONNECT = "disconnect"
    """The tightening ends while the controller is unreachable."""
    RESTART = "restart"
    """The power fails once: the tightening is lost."""
    SLOW = "slow"
    """The tightening takes ten times as long."""


@asynccontextmanager
async def open_openprotocol_controller(
    name: str = "wrench",
    *,
    port: int = 0,
    delay: float | None = WORK_SECONDS,
    supplier: str = "ACT",
    link_layer: bool = True,
    points: int = 0,
    now: Now = _local_now,
) -> AsyncIterator["TighteningController"]:
    """Serve a controller whose tightenings end after `delay` seconds; with None, only `end_tightening` ends them.

    Subscribers receive a curve of `points` samples for each kind that they want, without points none.
    """
    controller = TighteningController(name, delay, supplier, now, link_layer=link_layer)
    controller.points = points
    await controller.server.listen(port)
    try:
        async with background_task(controller.run(), f"tightening controller {name}"):
            yield controller
    finally:
        await controller.server.close()


class TighteningController:
    """A simulated controller with one spindle; `begun`, `stopped` and `finished` are the identifiers, in order.

    `acknowledged` are the numbers of the results that a client has acknowledged. `results` survive a power cut, as in
    flash memory. `fault` is the injected fault. With `job_runs`, no job can be selected.
    """

    def __init__(self, name: str, delay: float | None, supplier: str, now: Now, *, link_layer: bool) -> None:
        self.name = name
        self.supplier = supplier
        self.link_layer = link_layer
        self.points = 0
        self.spindles = 2
        self.fault = OpenProtocolFault.NONE
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.finished: list[str] = []
        self.acknowledged: list[int] = []
        self.results: dict[int, dict[str, Any]] = {}
        self._enabled = False
        self.identifier = ""
        self.parameter_set = 0
        self.job = 0
        self.alarm = ""
        self.job_runs = False
        self.batch_size, self.batch_counter = 1, 0
        self.clock_offset = timedelta()
        self.server = OpenProtocolServer(handlers_of(self), HIGHEST)
        self.server.on_delivered = self._note_delivery
        self._delay = delay
        self._now = now
        self._work: Tightening | None = None
        self._started: asyncio.Queue[Tightening] = asyncio.Queue()

    @property
    def enabled(self) -> bool:
        """Whether the tool is enabled; a change is reported to the subscribers of its lock."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value != self._enabled:
            self._enabled = value
            self.server.publish(Mid.RELAY, relay=TOOL_LOCKED_RELAY, active=int(not value))

    @property
    def parameter_sets(self) -> list[int]:
        """Return the numbers of its parameter sets."""
        return [*PARAMETER_SETS]

    @property
    def jobs(self) -> list[int]:
        """Return the numbers of its jobs."""
        return [*JOBS]

    @property
    def time(self) -> datetime:
        """Return the time of its clock."""
        return self._now() + self.clock_offset

    async def run(self) -> None:
        """End each tightening after the delay, with the effect of `fault`."""
        while True:
            work = await self._started.get()
            if self._delay is None or self.fault is OpenProtocolFault.SILENT:
                continue
            await asyncio.sleep(self._delay * (10 if self.fault is OpenProtocolFault.SLOW else 1))
            if work is not self._work:
                continue
            match self.fault:
                case OpenProtocolFault.ALARM:
                    self.break_down()
                case OpenProtocolFault.DISCONNECT:
                    async with self.server.unplugged():
                        self.end_tightening()
                        await asyncio.sleep(AWAY_SECONDS)
                case OpenProtocolFault.RESTART:
                    self.fault = OpenProtocolFault.NONE
                    async with self.server.unplugged():
                        self.forget()
                        await asyncio.sleep(AWAY_SECONDS)
                case _:
                    self.end_tightening()

    def end_tightening(self) -> None:
        """End the tightening at work with a result; without one, record a tightening of the operator's own."""
        work, self._work = self._work or Tightening(self.identifier, self.parameter_set, self.job), None
        number = max(self.results, default=0) + 1
        is_nok = self.fault in {OpenProtocolFault.NOK, OpenProtocolFault.NOK_ONCE}
        if self.fault is OpenProtocolFault.NOK_ONCE:
            self.fault = OpenProtocolFault.NONE
        self.batch_counter += self.batch_size > 1 and not is_nok
        self.results[number] = self._result(number, work, is_nok=is_nok)
        self.finished.append(work.identifier)
        if self.enabled and self.batch_counter < self.batch_size > 1:
            # The operator continues with the next bolt, or tightens the bad one again.
            self._begin()
        if self.fault is not OpenProtocolFault.UNREPORTED:
            self.report(number)

    def report(self, number: int | None = None) -> None:
        """Send a result to the subscribers, by default the last one, also when it was sent before."""
        result = self.results[number or max(self.results)]
        self.server.publish(Mid.RESULT, **result)
        self.server.publish_frame(MidFrame(Mid.SPINDLES_RESULT, spindles_of(result, self.spindles)))
        if self.points:
            self.server.publish_frame(MidFrame(Mid.TRACE_PARAMETERS, plot_of(result)))
        for kind in (ANGLE, TORQUE) if self.points else ():
            self.server.publish_frame(MidFrame(Mid.TRACE, curve_of(result, kind, self.points)))

    def break_down(self, code: str = JAMMED) -> None:
        """Raise an alarm, discard the tightening at work and disable the tool."""
        self._work, self.enabled, self.alarm = None, False, code
        self.server.publish(Mid.ALARM, code=code, controller_ready=0, tool_ready=0, time=self.time)

    def clear_alarm(self) -> None:
        """Clear the alarm at the controller."""
        code, self.alarm = self.alarm, ""
        self.server.publish(Mid.ALARM_STATUS, active=0, code=code, controller_ready=1, tool_ready=1, time=self.time)

    def forget(self) -> None:
        """Reset the state as a power cut does; the stored results survive."""
        self._work = None
        self.enabled = False
        self.batch_size, self.batch_counter = 1, 0
        self.identifier, self.parameter_set, self.job, self.alarm = "", 0, 0, ""

    def clear(self) -> None:
        """Forget everything, as a controller from the factory."""
        self.forget()
        self.fault = OpenProtocolFault.NONE
        self.results.clear()
        for log in (self.begun, self.stopped, self.finished, self.acknowledged, self.server.received):
            log.clear()

    def enable(self) -> None:
        """Enable the tool; the operator triggers it at once. Raises DeclineError while an alarm is active."""
        if self.fault is OpenProtocolFault.REFUSED or self.alarm:
            raise DeclineError(Decline.TOOL_LOCKED)
        if not self.enabled:
            self.enabled = True
            self.begun.append(self.identifier)
            self._begin()

    def _begin(self) -> None:
        """Begin a tightening: the operator presses the trigger."""
        self._work = Tightening(self.identifier, self.parameter_set, self.job)
        self._started.put_nowait(self._work)

    def set_batch_size(self, number: int, size: int) -> None:
        """Set the batch size of a parameter set, 0 for the selected one; raises DeclineError for one that it lacks."""
        if number and number not in PARAMETER_SETS:
            raise DeclineError(Decline.NO_PARAMETER_SET)
        self.batch_size = size

    def reset_batch(self, number: int) -> None:
        """Set the batch counter back; raises DeclineError for a parameter set that it does not have."""
        if number not in PARAMETER_SETS:
            raise DeclineError(Decline.NO_PARAMETER_SET)
        self.batch_counter = 0

    def disable(self) -> None:
        """Disable the tool; a tightening at work stops without a result."""
        self.enabled = False
        if self._work:
            self.stopped.append(self._work.identifier)
            self._work = None

    def select_parameter_set(self, number: int) -> None:
        """Select a parameter set; raises DeclineError for one that it does not have."""
        if number not in PARAMETER_SETS:
            raise DeclineError(Decline.NO_PARAMETER_SET)
        self.parameter_set, self.job = number, 0
        self.batch_size, self.batch_counter = 1, 0
        self.server.publish(Mid.PARAMETER_SET_SELECTED, id=number, changed=self.time)

    def select_job(self, number: int) -> None:
        """Select a job, with its first parameter set; raises DeclineError for one that it does not have."""
        if number not in JOBS:
            raise DeclineError(Decline.NO_JOB)
        if self.job_runs:
            raise DeclineError(Decline.JOB_NOT_SET)
        self.job, self.parameter_set = number, JOBS[number]
        self.server.publish(Mid.JOB_INFO, id=number, status=0, batch_size=1, time=self.time)

    def restart_job(self, number: int) -> None:
        """Begin the job that runs from its first tightening; raises DeclineError for another one."""
        if number != self.job:
            raise DeclineError(Decline.NO_JOB)
        self.job_runs, self.batch_counter = False, 0

    def describe_job(self, number: int) -> tuple[str, list[JobStep]]:
        """Return the name and the steps of a job; raises DeclineError for one that it does not have."""
        if number not in JOBS:
            raise DeclineError(Decline.NO_JOB)
        return f"job of {PARAMETER_SETS[JOBS[number]]:g} Nm", [JobStep(1, JOBS[number], 1)]

    def abort_job(self) -> None:
        """Abort the job and the tightening at work; raises DeclineError when no job runs."""
        if not self.job:
            raise DeclineError(Decline.NO_JOB_RUNS)
        self.job, self.job_runs = 0, False
        self.disable()

    def set_identifier(self, identifier: str) -> None:
        """Set the identifier of the next results."""
        self.identifier = identifier
        self.server.publish(Mid.IDENTIFIER_CHANGED, identifier=identifier)

    def describe(self, number: int) -> dict[str, Any]:
        """Return a parameter set with its limits; raises DeclineError for one that it does not have."""
        if number not in PARAMETER_SETS:
            raise DeclineError(Decline.NO_PARAMETER_SET)
        target = PARAMETER_SETS[number]
        limits = {"torque_min": target * (1 - _TOLERANCE), "torque_max": target * (1 + _TOLERANCE)}
        return {"id": number, "name": f"{target:g} Nm", "batch_size": 1, "torque_target": target, **limits}

    def acknowledge(self) -> None:
        """Record that a client has acknowledged the last result that was sent."""
        self.acknowledged.append(max(self.results, default=0))

    def _note_delivery(self, message: MidFrame) -> None:
        if message.mid in {Mid.RESULT, Mid.SPINDLES_RESULT}:
            self.acknowledge()

    def set_time(self, time: datetime | None) -> None:
        """Set the clock; raises DeclineError for what is not a time."""
        if time is None:
            raise DeclineError(Decline.INVALID_DATA)
        self.clock_offset = time - self._now()

    def _batch(self) -> dict[str, int]:
        if self.batch_size == 1:
            return {"batch_size": 1, "batch_counter": 1, "batch_status": _BATCH_NOT_USED}
        status = _BATCH_OK if self.batch_counter >= self.batch_size else _BATCH_RUNS
        return {"batch_size": self.batch_size, "batch_counter": self.batch_counter, "batch_status": status}

    def _result(self, number: int, work: Tightening, *, is_nok: bool) -> dict[str, Any]:
        target = PARAMETER_SETS.get(work.parameter_set, 0.0)
        return {
            "cell": 1,
            "channel": 1,
            "controller": self.name,
            "identifier": work.identifier,
            "job": work.job,
            "parameter_set": work.parameter_set,
            "parameter_set_name": f"{target:g} Nm",
            **self._batch(),
            "status": int(not is_nok),
            "torque_status": _HIGH if is_nok else _OK,
            "angle_status": _OK,
            "torque_min": round(target * (1 - _TOLERANCE), 2),
            "torque_max": round(target * (1 + _TOLERANCE), 2),
            "torque_target": target,
            "torque": round(target * (_NOK_FACTOR if is_nok else _OK_FACTOR), 2),
            "angle_max": 9999,
            "angle": 42,
            "torque_unit": 1,
            "result_type": 1,
            "tool_serial": "SIMULATED",
            "time": self.time,
            "parameter_set_changed": self.time,
            "result": number,
        }
