"""Kill gateway, broker and device, or disconnect them, at random instants; the device's log shows each work once.

A picture may be taken again, but only after the camera has lost the job in a power cut.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from edge.config import GatewaySettings, MqttSettings, NorthboundSettings, RedisSettings, Settings
from edge.features.simulator.mes import Mes, open_mes
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.model.isa95 import JobOrder, OrderCall, Parameter, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.run import ActionState
from edge.store import dead_letters, runs
from edge.store.background import retry_while_unavailable
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.app.running import NO_OPCUA, Gateway, edge_run, written
from tests.chaos.devices import PREFIX, TYPE_ID, WORK_S, Device, open_device
from tests.chaos.standstill import standstill_reported
from tests.local_broker import OwnBroker, open_broker
from tests.store.servers import own_server

SCOPE = "station-1"
JOB_ENDS_WITHIN_S = 240.0
READY_WITHIN_S = 300.0

Disturbance = Callable[[float], Awaitable[None]]
"""Disturbs a part of the plant for so many seconds."""


@dataclass
class Figures:
    """What a campaign has counted.

    `allowed` are the repetitions of work that the device may do again, because it had lost the work. `invented` jobs
    have a result of work that the device has not begun. `unlocked` is what the lock of the tool let pass.
    `slowest_start` is the longest time until a gateway was ready, with the processor time that it took. `timeouts` are
    the jobs that ended by their time limit, each with what happened and how long it took.
    """

    disturbances: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[ActionState] = field(default_factory=Counter)
    allowed: int = 0
    started: int = 0
    slowest_start: tuple[float, float] = (0.0, 0.0)
    timeouts: dict[str, str] = field(default_factory=dict)
    power_cuts: set[str] = field(default_factory=set)
    repeated: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    not_ready: list[str] = field(default_factory=list)
    unlocked: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def outcomes_by_name(self) -> dict[str, int]:
        """Return the outcomes in words."""
        return {outcome.value: count for outcome, count in self.outcomes.items()}

    def progress(self) -> tuple[int, int]:
        """Return how many jobs were disturbed and how many are over."""
        return self.disturbances.total(), self.outcomes.total() + len(self.stuck)

    def faults(self) -> list[str]:
        """Return what must not be."""
        return [f"{what}: {', '.join(jobs)}" for what, jobs in vars(self).items() if isinstance(jobs, list) and jobs]


class RestartedGateway:
    """`edge run`, started again whenever it was killed."""

    def __init__(self, file: Path, figures: Figures) -> None:
        self._file = file
        self._figures = figures
        self.process: Gateway | None = None
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Keep it running until cancelled."""
        while True:
            async with edge_run("--settings", self._file, module="tests.chaos.observed_gateway") as gateway:
                self.process = gateway
                began = time.monotonic()
                try:
                    await gateway.until("ready", READY_WITHIN_S)
                except TimeoutError:
                    self._figures.not_ready.append(" | ".join([*gateway.log][-5:]))
                except AssertionError:
                    # It was killed before it was ready.
                    continue
                else:
                    took = time.monotonic() - began, gateway.cpu_seconds()
                    self._figures.slowest_start = max(self._figures.slowest_start, took)
                    self.ready.set()
                    await gateway.ended(deadline=3600.0)
                    self.ready.clear()

    async def kill(self, _seconds: float) -> None:
        """Kill it without warning."""
        if self.process:
            with suppress(ProcessLookupError):
                self.process.send(signal.SIGKILL)
        self.ready.clear()


def disturbances_of(gateway: RestartedGateway, device: Device, broker: OwnBroker) -> Mapping[str, Disturbance]:
    """Return what may happen to the parts, by name."""

    async def kill_broker(seconds: float) -> None:
        await broker.kill()
        await asyncio.sleep(seconds)
        await broker.start()

    async def gateway_and_device(seconds: float) -> None:
        await asyncio.gather(gateway.kill(seconds), device.power_cut(seconds))

    return {
        "gateway killed": gateway.kill,
        "device cut off": device.disconnect,
        "device power cut": device.power_cut,
        "broker killed": kill_broker,
        "gateway killed, device power cut": gateway_and_device,
    }


def settings_for(redis: RedisSettings, broker: str, device: Device) -> Settings:
    """Return the settings of a gateway with one device."""
    return Settings(
        gateway=GatewaySettings(name="edge"),
        redis=redis,
        mqtt=MqttSettings(url=broker, client_id="edge"),
        northbound=NorthboundSettings(topic_prefix=PREFIX),
        southbound={"device": device.settings},
        opcua=NO_OPCUA,
    )


async def carry_out(kind: str, number: int, directory: Path, seed: int, publish_text: Callable[[str], None]) -> Figures:
    """Run jobs one by one, each disturbed at a random instant, and compare the device's log with the store."""
    figures, chance, opened_at = Figures(), random.Random(seed), time.monotonic()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        redis = RedisSettings(url=(await enter(own_server(directory))).url)
        broker = await enter(open_broker("autosave_interval 1"))
        device = await enter(open_device(kind, broker.url))
        settings = settings_for(redis, broker.url, device)
        gateway = RestartedGateway(written(settings, directory), figures)
        await enter(background_task(gateway.run(), "gateway"))
        store = await enter(open_store(redis, None))
        mes = await enter(open_mes(MqttSettings(url=broker.url), "chaos-mes", topic_prefix=PREFIX))
        await enter(standstill_reported(figures.progress, lambda: gateway.process, broker))
        await gateway.ready.wait()
        await mes.configure(SCOPE, "workmaster", WorkMaster(id="WM", data=RECIPE, dataschema=RECIPE_DATASCHEMA))
        acts = disturbances_of(gateway, device, broker)
        for n in range(number):
            what, act = chance.choice(list(acts.items()))
            figures.disturbances[what] += 1
            if "power cut" in what:
                figures.power_cuts.add(f"J{n}")
            began = time.monotonic()
            outcome = await _run_job(f"J{n}", mes, store, gateway, partial(act, chance.uniform(0.05, 1.0)), chance)
            if outcome is None:
                figures.stuck.append(f"J{n}")
                continue
            figures.outcomes[outcome] += 1
            if outcome is ActionState.TIMED_OUT:
                figures.timeouts[f"J{n}"] = f"{what}, {time.monotonic() - began:.0f} s"
            if n % 10 == 9:
                publish_text(f"  {n + 1} jobs: {figures.outcomes_by_name()}")
        await asyncio.sleep(2.0)
        for _ in range(100):
            # A gateway that starts again disables the tool.
            if not device.lock_faults():
                break
            await asyncio.sleep(0.5)
        figures.unlocked += device.lock_faults()
        await _compare(number, device, store, figures)
    figures.seconds = time.monotonic() - opened_at
    return figures


async def start_job(job_id: str, mes: Mes) -> None:
    """Start a job as the MES does, again until it is accepted."""
    parameters = (
        Parameter(id="joining_process_id", value=f"{job_id} 85Nm"),
        Parameter(id="recipe_id", value="P1"),
        Parameter(id="parameter_set", value=3),
        Parameter(id="vin", value=job_id),
    )
    order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),), job_order_parameters=parameters)
    with suppress(Refused):
        # A repeated call for a stored order is declined.
        await retry_while_unavailable("order", partial(mes.call, SCOPE, "StoreAndStart", OrderCall(job_order=order)))


async def _run_job(
    job_id: str,
    mes: Mes,
    store: Store,
    gateway: RestartedGateway,
    act: Callable[[], Awaitable[None]],
    chance: random.Random,
) -> ActionState | None:
    """Run a job and disturb it; return the outcome of its action, None when it did not end."""
    await gateway.ready.wait()
    await start_job(job_id, mes)
    await asyncio.sleep(chance.uniform(0.0, 2.5 * WORK_S))
    await act()
    # A machine that is busy starts the gateway late: the limit is for the job.
    await gateway.ready.wait()
    end = time.monotonic() + JOB_ENDS_WITHIN_S
    while time.monotonic() < end:
        with suppress(Unavailable):
            stored_run = await runs.load(store, job_id)
            if stored_run is not None and stored_run.run.ended:
                (work,) = [
                    association
                    for key, association in stored_run.run.associations.items()
                    if association.action == "work"
                ]
                return work.state
        await asyncio.sleep(0.05)
    return None


async def _compare(number: int, device: Device, store: Store, figures: Figures) -> None:
    """Compare the log of the device with what reached the store."""
    letters = {letter.job_id for letter in (await dead_letters.load_all(store)).values()}
    for n in range(number):
        job_id = f"J{n}"
        stored_run = await runs.load(store, job_id)
        associations = stored_run.run.associations.values() if stored_run else ()
        attempts = max([association.attempt for association in associations] or [1])
        figures.started += device.started(job_id)
        if device.started(job_id) == 0 and any(
            association.state is ActionState.COMPLETED for association in associations
        ):
            figures.invented.append(job_id)
        if device.started(job_id) > attempts:
            if device.repeatable and job_id in figures.power_cuts:
                figures.allowed += 1
            else:
                figures.repeated.append(job_id)
        reached = any(association.result is not None for association in associations)
        if job_id in device.results() and not reached and job_id not in letters:
            figures.lost.append(job_id)


RECIPE = {
    "steps": [{"name": "Work", "initial": True, "lock": ["device"]}, {"name": "Done"}],
    "transitions": [
        {
            "source": "Work",
            "target": "Done",
            "condition": "actions.work.done or actions.work.failed or actions.work.timed_out or actions.work.unknown",
        }
    ],
    "actions": [
        {
            "name": "work",
            "step": "Work",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": TYPE_ID,
            "timeout_seconds": 30,
        }
    ],
}
"""Work that may come to any end; its joining process comes with the order."""
