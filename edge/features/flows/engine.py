"""Begins the cycles that are due, runs them, and takes over those of a stopped gateway."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import structlog
from msgspec import Struct, field

from edge.features.flows import decision
from edge.features.flows.cycle import CycleStatus
from edge.features.flows.decision import follow_step
from edge.features.flows.node_task import ReceivedResult
from edge.features.flows.plan import Plan
from edge.features.flows.runner import CycleLostError, CycleRunner, RunnerContext
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, Written
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Latency
from edge.foundation.listeners import notify
from edge.foundation.metric import MetricFamily, counter, histogram
from edge.foundation.task_group import TaskGroup
from edge.store.background import restart_on_outage

logger = structlog.get_logger(__name__)

_BATCH: Final = 100
_LOOK_AGAIN_S: Final = 5.0
"""Maximum delay until a schedule change with a missed announcement is read; also bounds a clock step."""
_NOTHING_BEGUN_S: Final = 0.5
_SMALLEST_STEP_MS: Final = 50
"""A smaller difference is a correction of NTP."""
LATENESS_BUCKETS_S: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 60.0)

_OUTCOMES: Final = (CycleStatus.COMPLETED, CycleStatus.FAILED, CycleStatus.TERMINATED)


def _since_boot_ms() -> int:
    # This clock also runs while the machine is suspended.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class FlowStats(Struct):
    """The counters of flows since the start of this gateway."""

    cycles: dict[CycleStatus, int] = field(default_factory=lambda: dict.fromkeys(_OUTCOMES, 0))
    missed: int = 0
    lateness: Latency = field(default_factory=lambda: Latency(LATENESS_BUCKETS_S))
    duration: Latency = field(default_factory=lambda: Latency(LATENESS_BUCKETS_S))

    async def metrics(self) -> Sequence[MetricFamily]:
        """Return what is counted, for a scrape."""
        cycles = [((status.value,), count) for status, count in self.cycles.items()]
        lateness = "Time from the instant at which a cycle is due to its begin."
        return (
            counter("flow_cycles", "Ended cycles of flows.", ("outcome",), cycles),
            counter("flow_cycles_missed", "Cycles that did not run in time.", (), [((), self.missed)]),
            histogram("flow_cycle_lateness_seconds", lateness, (), [((), self.lateness)]),
            histogram("flow_cycle_duration_seconds", "Duration of the cycles.", (), [((), self.duration)]),
        )


class FlowEngine:
    """The flows of one gateway on a flow state that it may share with others."""

    def __init__(
        self,
        context: RunnerContext,
        is_gone: Callable[[str], Awaitable[bool]],
        *,
        look_every_s: float = 2.0,
        elapsed_ms: Callable[[], int] = _since_boot_ms,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """Run flows; `is_gone` returns whether the lease of the gateway of a name has ended.

        A step of the clock is its change against `elapsed_ms`, which runs evenly. While `may_begin` returns False,
        cycles that are due wait.
        """
        self.stats = FlowStats()
        self.listeners: list[Callable[[FlowRecord, CycleRecord], None]] = []
        """Called with each flow whose cycle has begun or ended here."""
        self._context = context
        self._state = context.state
        self._is_gone = is_gone
        self._look_every_s = look_every_s
        self._elapsed_ms = elapsed_ms
        self._may_begin = may_begin
        self._runners: dict[str, CycleRunner] = {}
        self._beginning: set[str] = set()
        self._unplanned: set[str] = set()
        self._has_new_runner = asyncio.Event()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Run flows until cancelled; continue first the cycles that this gateway ran when it stopped."""
        async with TaskGroup() as tasks:
            tasks.create_task(restart_on_outage("flow changes", self._follow), name="flow changes")
            tasks.create_task(
                restart_on_outage("flow take-over", lambda: self._take_over(tasks)), name="flow take-over"
            )
            tasks.create_task(restart_on_outage("worker results", self._receive), name="worker results")
            await restart_on_outage("flows", lambda: self._serve(tasks))

    async def _follow(self) -> None:
        position = ""
        while True:
            position, flows = await self._state.announced(position)
            for flow_id in flows:
                if runner := self._runners.get(flow_id):
                    runner.look()
            if flows:
                self._wake.set()

    async def _receive(self) -> None:
        """Dispatch the results of workers to the runners of their cycles; those of cycles that are over are dropped."""
        position = ""
        while True:
            position, results = await self._state.results(position)
            skipped = [received for received in results if not await self._hand_over(received)]
            if skipped or self._has_new_runner.is_set():
                # Their runner is another gateway's, or will begin in a moment.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._look_every_s):
                        await self._has_new_runner.wait()
                self._has_new_runner.clear()
                position = ""

    async def _hand_over(self, received: ReceivedResult) -> bool:
        """Dispatch a result to its runner, or drop it after its cycle; return False when neither was possible."""
        result = received.result
        runner = self._runners.get(result.flow_id)
        if runner and runner.record.cycle.number == result.cycle:
            runner.receive(received)
            return True
        flow = await self._state.load_flow(result.flow_id)
        if flow is not None and flow.in_cycle and flow.last_cycle == result.cycle:
            return False
        await self._state.commit(FlowChange(taken=(received.entry_id,)))
        return True

    async def _serve(self, tasks: TaskGroup) -> None:
        origin = self._origin()
        await self._change_schedules(decision.correct_schedule)
        while True:
            # Another gateway may have moved the schedules to a clock that this one has not measured yet.
            await self._context.measure_clock()
            step, origin = self._origin() - origin, self._origin()
            if abs(step) >= _SMALLEST_STEP_MS:
                logger.warning("clock stepped, flows follow", step_s=step / 1000)
                await self._change_schedules(partial(follow_step, step=step))
            self._wake.clear()
            begun = await self._begin_due(tasks)
            if not any(begun):
                await self._sleep(is_waiting=bool(begun))

    def _origin(self) -> int:
        """Return the instant at which the even clock was zero; a step of the clock changes it."""
        return self._context.clock() - self._elapsed_ms()

    async def _begin_due(self, tasks: TaskGroup) -> list[bool]:
        """Begin the cycles that are due, all at once: flows that are due together share round trips to the store."""
        due = await self._state.due(self._context.clock(), _BATCH)
        if not self._may_begin():
            return [False] * len(due)
        found = await asyncio.gather(*(self._begin(flow_id, tasks) for flow_id in due), return_exceptions=True)
        if failed := [value for value in found if isinstance(value, BaseException)]:
            raise failed[0]
        return [value is True for value in found]

    async def _sleep(self, *, is_waiting: bool) -> None:
        """Sleep until a cycle is due; while one is due that cannot begin here, for a moment."""
        due = await self._state.next_due()
        wait_s = _LOOK_AGAIN_S
        if due is not None:
            wait_s = min(wait_s, max(0, due - self._context.clock()) / 1000)
        if is_waiting:
            wait_s = max(wait_s, _NOTHING_BEGUN_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()

    async def _change_schedules(self, change: Callable[[FlowRecord, Plan, int], FlowRecord]) -> None:
        """Reschedule the flows whose due time does not fit the clock."""
        for flow_id in await self._state.flow_ids():
            flow = await self._state.load_flow(flow_id)
            plan = self._plan(flow) if flow else None
            if flow is None or plan is None:
                continue
            changed = change(flow, plan, self._context.clock())
            if changed is not flow and await self._state.commit(FlowChange(Written(flow, changed))):
                self.stats.missed += changed.missed - flow.missed
                logger.info("flow rescheduled", flow=flow_id, next_at=changed.next_at)

    async def _begin(self, flow_id: str, tasks: TaskGroup) -> bool:
        """Begin the next cycle of a flow; return whether this gateway did."""
        flow = await self._state.load_flow(flow_id)
        plan = self._plan(flow) if flow else None
        if flow is None or plan is None or flow.next_at is None or flow.next_at > self._context.clock():
            return False
        # Until its runner is registered, the cycle must not be treated as abandoned.
        self._beginning.add(flow_id)
        try:
            runner = await CycleRunner.begin(self._context, plan, flow)
            if runner is None:
                return False
            self._run(runner, tasks)
        except Unavailable:
            raise
        except Exception:
            # A defect in one flow must not stop the others.
            logger.exception("flow cycle cannot begin", flow=flow_id)
            return False
        finally:
            self._beginning.discard(flow_id)
        self.stats.missed += runner.flow.missed - flow.missed
        self.stats.lateness.record(max(0, runner.record.started_at - runner.record.cycle.at) / 1000)
        return True

    def _run(self, runner: CycleRunner, tasks: TaskGroup) -> None:
        notify(self.listeners, runner.flow, runner.record)
        if runner.has_ended:
            self._count(runner)
            return
        flow_id = runner.flow.flow_id
        self._runners[flow_id] = runner
        # Results of this cycle may have come before its runner.
        self._has_new_runner.set()
        tasks.create_task(self._run_to_end(flow_id, runner), name=f"flow {flow_id}")

    async def _run_to_end(self, flow_id: str, runner: CycleRunner) -> None:
        try:
            await runner.run()
        except Exception:
            # A defect in one flow must not stop the others; the cycle is taken over.
            logger.exception("flow cycle failed", flow=flow_id)
        finally:
            if self._runners.get(flow_id) is runner:
                del self._runners[flow_id]
            self._wake.set()
        if runner.has_ended:
            self._count(runner)
            notify(self.listeners, runner.flow, runner.record)

    def _count(self, runner: CycleRunner) -> None:
        record = runner.record
        status = record.cycle.status
        self.stats.cycles[status] += 1
        self.stats.duration.record(max(0, (record.ended_at or 0) - record.started_at) / 1000)

    def _plan(self, flow: FlowRecord) -> Plan | None:
        """Return the plan of a flow; None when this gateway lacks a node kind of it."""
        found = self._context.plans.of(flow.document)
        if isinstance(found, Plan):
            self._unplanned.discard(flow.flow_id)
            return found
        if flow.flow_id not in self._unplanned:
            self._unplanned.add(flow.flow_id)
            faults = [f"{fault.where}: {fault.message}" for fault in found.faults]
            logger.warning("flow cannot run on this gateway", flow=flow.flow_id, faults=faults)
        return None

    async def _take_over(self, tasks: TaskGroup) -> None:
        while True:
            for flow_id in await self._state.running():
                if not self._is_ours(flow_id):
                    await self._take_over_flow(flow_id, tasks)
            await asyncio.sleep(self._look_every_s)

    async def _take_over_flow(self, flow_id: str, tasks: TaskGroup) -> None:
        flow = await self._state.load_flow(flow_id)
        if flow is None or not flow.in_cycle:
            return
        record = await self._state.load_cycle(flow, flow.last_cycle)
        if record is None or record.ended_at is not None:
            # The cycle has expired or was removed by hand: the flow continues with the next.
            await self._state.commit(FlowChange(Written(flow, decision.lose_cycle(flow, self._context.clock()))))
            self._wake.set()
            return
        if record.owner != self._context.owner and not await self._is_gone(record.owner):
            return
        plan = self._context.plans.of(record.document)
        if not isinstance(plan, Plan) or self._is_ours(flow_id):
            return
        runner = CycleRunner(self._context, plan, flow, record)
        try:
            await runner.take_over()
        except CycleLostError:
            return
        logger.info("flow cycle taken over", flow=flow_id, cycle=flow.last_cycle, former=record.owner)
        self._run(runner, tasks)

    def _is_ours(self, flow_id: str) -> bool:
        """Return whether this process runs the cycle of a flow, or is about to."""
        return flow_id in self._runners or flow_id in self._beginning
