"""A MES that repeats each call, under the same id, until it is answered, and notes what it hears of its jobs."""

import asyncio
from collections import defaultdict

from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, OrderCall, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.chaos.equipment import RETRY_S
from tests.chaos.recipes import KINDS, Kind

REPEAT_S = 1.0
ENDS = ("Ended", "Aborted")


class Mes:
    """`answers` holds the answer for each job, `states` its status events, `ended` the jobs that ended."""

    def __init__(self, session: MqttSession, prefix: str, scope: str) -> None:
        self.answers: dict[str, int] = {}
        self.states: dict[str, list[str]] = defaultdict(list)
        self.ended: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.repeated = 0
        self._session = session
        self._prefix = prefix
        self._scope = scope
        self._seen: set[str] = set()
        self._waiting: dict[str, asyncio.Future[CloudEvent]] = {}

    async def open(self) -> None:
        """Listen, and let the station know the recipes."""
        await self._session.subscribe(f"{self._prefix}/answers/mes", self._take_answer)
        await self._session.subscribe(f"{self._prefix}/{self._scope}/events", self._take_event)
        await self._session.subscribe(f"{self._prefix}/{self._scope}/order/+", self._take_order)
        for kind in KINDS:
            master = WorkMaster(id=kind.name, data=kind.recipe, dataschema=RECIPE_DATASCHEMA)
            event = self._event(f"configure {kind.name}", CONFIG_TYPE.format("workmaster"), master)
            answer = await self._ask(event)
            assert answer.mdcserrorkind is None, answer.mdcserrormessage

    async def start(self, job_id: str, kind: Kind) -> None:
        """Call StoreAndStart for a job."""
        call = OrderCall(job_order=JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id=kind.name),)))
        answer = await self._ask(self._event(f"start {job_id}", METHOD_TYPE.format("StoreAndStart"), call))
        self.answers[job_id] = answer.data["ReturnStatus"]
        assert self.answers[job_id] == ReturnStatus.NO_ERROR, answer.mdcserrormessage

    def heard_all(self) -> bool:
        """Return whether the end of every job was received as a status event."""
        return all(any(state.startswith(ENDS) for state in self.states[job_id]) for job_id in self.answers)

    def _event(self, event_id: str, event_type: str, data: object) -> CloudEvent:
        return CloudEvent(id=event_id, source="/mes", type=event_type, subject=self._scope, data=data)

    async def _ask(self, event: CloudEvent) -> CloudEvent:
        waiting = self._waiting[event.id] = asyncio.get_running_loop().create_future()
        topics = (f"{self._prefix}/{self._scope}/commands", f"{self._prefix}/answers/mes")
        message = to_message(event, topics[0], response_topic=topics[1])
        while True:
            try:
                await self._session.send(message)
                return await asyncio.wait_for(asyncio.shield(waiting), REPEAT_S)
            except TimeoutError:
                self.repeated += 1
            except Unavailable:
                await asyncio.sleep(RETRY_S)

    async def _take_answer(self, message: Message) -> None:
        answer = to_event(message)
        waiting = self._waiting.get(answer.causationid or "")
        if waiting and not waiting.done():
            waiting.set_result(answer)

    async def _take_event(self, message: Message) -> None:
        event = to_event(message)
        if event.type != STATUS_EVENT_TYPE or event.id in self._seen:
            return
        self._seen.add(event.id)
        job_id = event.data["JobOrder"]["JobOrderID"]
        states = [state["StateText"]["Text"] for state in event.data["JobState"]]
        self.states[job_id].append("/".join(states))
        if states[0] in ENDS:
            self.ended[job_id].set()

    async def _take_order(self, message: Message) -> None:
        if not message.payload:
            return
        order = to_event(message).data
        if order["State"][0]["StateText"]["Text"] in ENDS:
            self.ended[order["JobOrder"]["JobOrderID"]].set()
