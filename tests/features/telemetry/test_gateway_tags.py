"""The gateway as a source: changed values are sampled, and built-in rules may be replaced by the user."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from edge.config import RedisSettings, Settings
from edge.features.telemetry.gateway_tags import MIN_RUNS, GatewayTags, OverdueStep, StepTimes
from edge.features.traces.settings import TracesSettings
from edge.foundation.task_group import background_task
from edge.model.isa95 import JobOrder, WorkMaster
from edge.ports.sample_lines import Line, Quality, Sample
from edge.sfc.run import Outcome, StepState, new_run
from edge.sfc.signal import StepChange
from edge.station.equipment_watch import EquipmentStats
from edge.store.background import Defects
from edge.store.bounds import BoundedCount, BoundedCounts
from edge.store.open_store import open_store
from edge.store.server_check import MemoryUsage
from edge.store.store_repair import RepairReport
from tests.conftest import WaitUntil
from tests.store.sentinel_line import open_line

COUNTS = BoundedCounts(BoundedCount(600, 1000))


def core_of(connected: dict[str, bool | None], memory: MemoryUsage) -> Any:
    problems = {"camera": "it is in Error"}
    watched = [
        SimpleNamespace(
            equipment=SimpleNamespace(name=name, connected=on, problem=problems.get(name, "")),
            type_ids=[f"{name}.v1"],
            stats=EquipmentStats(),
        )
        for name, on in connected.items()
    ]
    return SimpleNamespace(
        settings=Settings(sections={"traces": TracesSettings(directory="/var/lib/traces")}),
        watch=SimpleNamespace(watched=watched, maybe_active=lambda: ["wrench"], flooding=["camera"]),
        health=SimpleNamespace(
            memory=memory, certificates=SimpleNamespace(expiring=1), counts=COUNTS, faulty_recipes=2
        ),
        runs=SimpleNamespace(listeners=[]),
        store=SimpleNamespace(defects=Defects()),
        active_runs=SimpleNamespace(loaded={}),
        retention=SimpleNamespace(confirmation="none"),
        clock=lambda: 0,
    )


def test_values_are_sampled_on_change_and_periodically() -> None:
    taken: list[Line] = []
    core = core_of({"wrench": True, "camera": None}, MemoryUsage(50, 100))
    tags = GatewayTags(core, taken.append, lambda: 0)
    tags.sample(0)
    samples = {sample.tag: sample.value for sample in taken if isinstance(sample, Sample)}
    assert (samples["equipment.wrench.connected"], samples["gateway.store_fullness"]) == (1, 0.5)
    assert samples["gateway.marks_fullness"] == 0.6
    assert samples["gateway.failing_tasks"] == 0
    assert "equipment.camera.connected" not in samples
    assert (samples["equipment.wrench.maybe_active"], samples["equipment.camera.maybe_active"]) == (1, 0)
    assert samples["equipment.wrench.unknown_outcomes"] == 0
    assert (samples["equipment.wrench.answers_flooded"], samples["equipment.camera.answers_flooded"]) == (0, 1)
    assert samples["equipment.wrench.lost_traces"] == 0
    assert (samples["equipment.wrench.fault"], samples["equipment.camera.fault"]) == (0, 1)
    assert samples["gateway.certificates_expiring"] == 1
    assert samples["gateway.jobs_await_person"] == 0
    assert samples["gateway.faulty_recipes"] == 2
    taken.clear()
    core.watch.watched[0].equipment.connected = False
    tags.sample(2_000)
    found = [sample for sample in taken if cast("Sample", sample).tag.startswith("equipment.")]
    assert found == [Sample(2_000, "equipment.wrench.connected", 0, gateway="edge")]
    taken.clear()
    core.store.defects.record("rules", KeyError("unforeseen"))
    tags.sample(4_000)
    assert taken == [Sample(4_000, "gateway.failing_tasks", 1, gateway="edge")]
    taken.clear()
    tags.sample(602_000)
    assert Sample(602_000, "equipment.wrench.connected", 0, gateway="edge") in taken


def test_machine_is_measured_at_intervals_after_a_clock_step_too() -> None:
    """Its board and its clock were read every two seconds: a seventh of what an idle gateway did."""
    measured: list[int] = []
    now = 0

    def board() -> Iterator[tuple[str, float]]:
        measured.append(now)
        yield "gateway.cpu_temperature", 40

    tags = GatewayTags(core_of({}, MemoryUsage(50, 100)), lambda _: None, lambda: 0, board)
    for now in (100_000, 102_000, 108_000, 110_000, 112_000, 50_000, 52_000):
        tags.sample(now)
    assert measured == [100_000, 110_000, 50_000]


def test_lost_traces_are_counted_until_one_is_stored() -> None:
    taken: list[Line] = []
    core = core_of({"wrench": True}, MemoryUsage(50, 100))
    tags, stats = GatewayTags(core, taken.append, lambda: 0), core.watch.watched[0].stats
    for stored, lost in ((1, []), (0, ["the disk is full"]), (0, ["the disk is full"]), (1, [])):
        stats.record_traces(stored, lost)
        tags.sample(0)
    values = [sample.value for sample in taken if isinstance(sample, Sample) and sample.tag.endswith("lost_traces")]
    assert (values, stats.lost_traces) == ([0, 1, 2, 0], 2)


def test_skipped_results_are_counted_until_a_command_is_carried_out() -> None:
    taken: list[Line] = []
    core = core_of({"wrench": True}, MemoryUsage(50, 100))
    tags, stats = GatewayTags(core, taken.append, lambda: 0), core.watch.watched[0].stats
    tags.sample(0)
    for kind in ("unreadable", "too_large", "too_large"):
        stats.record_refused(kind, "a reason")
        tags.sample(0)
    for error in ("declined", None):
        stats.record_answer(0, None, error)
        tags.sample(0)
    values = [sample.value for sample in taken if isinstance(sample, Sample) and sample.tag.endswith("skipped_results")]
    assert (values, stats.refused) == ([0, 1, 2, 0], 3)


def test_equipment_without_presence_is_not_offline_forever() -> None:
    taken: list[Line] = []
    core = core_of({"wrench": None}, MemoryUsage(50, 100))
    tags = GatewayTags(core, taken.append, lambda: 0)
    # The broker is away, and back: nothing shows again that the equipment is there.
    for now, connected in ((0, None), (2_000, False), (8_000, None), (17_000, None), (18_000, None), (20_000, False)):
        core.watch.watched[0].equipment.connected = connected
        tags.sample(now)
    found = [sample for sample in taken if cast("Sample", sample).tag == "equipment.wrench.connected"]
    assert found == [
        Sample(2_000, "equipment.wrench.connected", 0, gateway="edge"),
        Sample(18_000, "equipment.wrench.connected", 1, Quality.UNCERTAIN, gateway="edge"),
        Sample(20_000, "equipment.wrench.connected", 0, gateway="edge"),
    ]


def test_store_whose_limit_is_removed_ends_the_alarm_and_has_no_fullness() -> None:
    """The tag kept its last value, and the alarm that the store is nearly full never ended."""
    taken: list[Line] = []
    core = core_of({}, MemoryUsage(90, 100))
    tags = GatewayTags(core, taken.append, lambda: 0, tuple)
    for now, limit in ((0, 100), (2_000, 0), (4_000, 0), (6_000, 0), (8_000, 200)):
        core.health.memory = MemoryUsage(90, limit)
        tags.sample(now)
    assert [sample for sample in taken if cast("Sample", sample).tag == "gateway.store_fullness"] == [
        Sample(0, "gateway.store_fullness", 0.9),
        Sample(2_000, "gateway.store_fullness", 0),
        Sample(4_000, "gateway.store_fullness", None, Quality.BAD),
        Sample(8_000, "gateway.store_fullness", 0.45),
    ]


def test_sensor_that_can_no_longer_be_read_has_bad_quality() -> None:
    taken: list[Line] = []
    readings: list[list[tuple[str, float]]] = [
        [("gateway.cpu_temperature", 1)],
        [],
        [],
        [("gateway.cpu_temperature", 0)],
    ]
    tags = GatewayTags(core_of({}, MemoryUsage(50, 100)), taken.append, lambda: 0, lambda: readings.pop(0))
    for now in (0, 10_000, 20_000, 30_000):
        tags.sample(now)
    assert [sample for sample in taken if cast("Sample", sample).tag == "gateway.cpu_temperature"] == [
        Sample(0, "gateway.cpu_temperature", 1, gateway="edge"),
        Sample(10_000, "gateway.cpu_temperature", None, Quality.BAD, gateway="edge"),
        Sample(30_000, "gateway.cpu_temperature", 0, gateway="edge"),
    ]


def test_supply_that_is_too_low_for_a_moment_is_noticed() -> None:
    """The alarm of the board lasts two seconds, and was read every ten."""
    taken: list[Line] = []
    alarms = [0, 1, 0]
    tags = GatewayTags(
        core_of({}, MemoryUsage(50, 100)),
        taken.append,
        lambda: 0,
        tuple,
        lambda: [("gateway.undervoltage", alarms.pop(0))],
    )
    for now in (0, 2_000, 4_000):
        tags.sample(now)
    samples = [cast("Sample", sample) for sample in taken]
    assert [sample.value for sample in samples if sample.tag == "gateway.undervoltage"] == [0, 1, 0]


async def test_kept_files_of_repairs_are_counted_until_they_are_removed(tmp_path: Path, wait_until: WaitUntil) -> None:
    taken: list[Line] = []
    directory = tmp_path / "store"
    settings = RedisSettings(url=f"embedded:{directory}", durability="any")
    async with open_store(settings, None) as store:
        await store.execute("SET", "job", "stored")
    with (directory / "appendonlydir" / "appendonly.aof.1.incr.aof").open("ab") as file:
        file.write(bytes(512))
    async with open_store(settings, None) as store:
        core = core_of({}, MemoryUsage(50, 100))
        core.settings, core.store = Settings(redis=settings), store
        now = 60_000
        async with background_task(GatewayTags(core, taken.append, lambda: now).run(0.01), "gateway tags"):
            await wait_until(lambda: Sample(60_000, "gateway.store_repairs", 1) in taken)
            shutil.rmtree(directory / "repaired")
            now = 120_000
            await wait_until(lambda: Sample(120_000, "gateway.store_repairs", 0) in taken)


async def test_repairs_in_a_line_are_those_of_the_machine_of_a_gateway(
    tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    """Two gateways of a line would have ended the alarm of each other."""
    taken: list[Line] = []
    (tmp_path / "1.json").write_bytes(msgspec.json.encode(RepairReport(at=1, file="a", cut_bytes=512, whole_bytes=9)))
    async with open_line(tmp_path, nodes=1) as line:
        settings = line.settings(unique, repair_reports=str(tmp_path))
        async with open_store(settings, None) as store:
            core = core_of({}, MemoryUsage(50, 100))
            core.settings, core.store = Settings(redis=settings), store
            core.health.servers = SimpleNamespace(tags=lambda: ())
            async with background_task(GatewayTags(core, taken.append, lambda: 60_000).run(0.01), "gateway tags"):
                sample = Sample(60_000, "gateway.store_repairs", 1, gateway=core.settings.gateway.name)
                await wait_until(lambda: sample in taken)


def loaded(job_id: str, state: StepState, **others: Any) -> Any:
    active = frozenset({"A"} if state.active else ())
    run = replace(new_run(job_id, "s", "r", {}), steps={"A": state}, active=active, **others)
    order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),))
    return SimpleNamespace(job=SimpleNamespace(job_id=job_id, order=order), stored=SimpleNamespace(run=run))


def learn(times: StepTimes, seconds: float, count: int = MIN_RUNS, job_id: str = "J") -> None:
    for number in range(count):
        left = StepState(0, 1, active=False, elapsed_ms=round(seconds * 1000) + number)
        change = StepChange("A", active=False, at=0)
        times.watch(SimpleNamespace(loaded=loaded(job_id, left), steps=(change,)))  # type: ignore[arg-type]


def test_step_is_overdue_after_twice_its_usual_time() -> None:
    times = StepTimes()
    learn(times, 10)
    runs = {"J1": loaded("J1", StepState(1_000, 1, active=True))}
    assert list(times.overdue(runs, 20_000)) == []
    assert list(times.overdue(runs, 21_100)) == [OverdueStep("J1", "A", 20.1, 10.0)]
    assert list(times.overdue(runs, 99_000)) == []
    again = {"J1": loaded("J1", StepState(100_000, 2, active=True))}
    assert [overdue_step.step for overdue_step in times.overdue(again, 200_000)] == ["A"]


def test_step_with_few_runs_or_in_a_pause_is_not_overdue() -> None:
    times = StepTimes()
    learn(times, 10, MIN_RUNS - 1)
    active = StepState(0, 1, active=True)
    assert list(times.overdue({"J1": loaded("J1", active)}, 99_000)) == []
    learn(times, 10, 1)
    assert list(times.overdue({"J1": loaded("J1", active, paused_at=5)}, 99_000)) == []
    assert list(times.overdue({"J1": loaded("J1", active, outcome=Outcome.ABORTED)}, 99_000)) == []
    assert list(times.overdue({"J1": loaded("J1", active)}, 99_000))


def test_duration_of_an_overdue_step_does_not_change_the_usual_time() -> None:
    times = StepTimes()
    learn(times, 10)
    assert list(times.overdue({"J1": loaded("J1", StepState(0, 1, active=True))}, 99_000))
    learn(times, 99, 1, job_id="J1")
    assert [
        overdue_step.usual for overdue_step in times.overdue({"J2": loaded("J2", StepState(0, 1, active=True))}, 99_000)
    ] == [10.0]
