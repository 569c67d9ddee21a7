"""The action of an alarm is called once, for an existing job."""

from typing import Any, cast

from edge.features.telemetry.alarm_actions import CURSOR, follow_actions
from edge.links.background_task import background_task
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import Cause
from edge.ports.alarm import ActiveState, Alarm, AlarmChangeKind
from edge.station.job_call import CallAnswer, JobCall
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange
from tests.conftest import WaitUntil
from tests.station.plant import LINEAR, Clock, Plant, order


class Recorder:
    """Takes calls as the job service does."""

    def __init__(self) -> None:
        self.calls: list[JobCall] = []

    async def call(self, call: JobCall) -> CallAnswer:
        self.calls.append(call)
        return CallAnswer(ReturnStatus.NO_ERROR)


async def test_action_is_called_once_for_the_job_of_the_alarm(store: Store, wait_until: WaitUntil) -> None:
    plant, recorder = Plant(store, {}, Clock()), Recorder()
    await plant.teach("linear", LINEAR)
    await plant.order(Cause.STORE, order("J1", "linear"))
    for job, action in (("J1", "abort"), ("gone", "abort"), ("J1", ""), ("J1", "pause")):
        alarm = Alarm(id="a", rule="r", subject="s", active=ActiveState.ACTIVE, job=job, message={"en": "hot"})
        change = AlarmChange(alarm, AlarmChangeKind.RAISED, action)
        await store.commit(alarms.save(store.keys, await alarms.load(store), [change]))
    last = (await alarms.newest(store, 1))[0].position
    for _ in range(2):
        async with background_task(follow_actions(store, cast("Any", recorder), "urn:x"), "actions"):
            await wait_until(lambda: len(recorder.calls) >= 2)
            while await alarms.cursor(store, CURSOR) != last:
                await store.execute("PING")
    assert [call.method for call in recorder.calls] == [Cause.ABORT, Cause.HOLD]
    assert {call.by for call in recorder.calls} == {"alarm r"}
    assert len({call.event_id for call in recorder.calls}) == 2
