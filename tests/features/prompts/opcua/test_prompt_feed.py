"""Prompts as conditions: a client of another vendor and a plain one see them open and end, and answer them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from asyncua import Client, ua

from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, PromptContext, Prompts
from edge.features.prompts.opcua.prompt_feed import show_prompts
from edge.foundation.task_group import background_task
from edge.model.user import Role
from edge.sfc.signal import Tick
from edge.station.active_runs import ActiveRuns
from edge.uaserver.namespaces import Namespace
from edge.uaserver.parts import NewServer, ServerPart
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER, prompt
from tests.features.telemetry.opcua.alarm_plant import AlarmClient, alarm_client
from tests.station.plant import SCOPE, Clock, Plant
from tests.uaserver.running import MACHINES, served

RESPOND = "i=9069"
ANSWER = f"ns={int(Namespace.TYPES)};s=EnterPromptType/AnswerPrompt"
DIALOG = ["EventType", "ConditionName", "SourceName", "Message", "Retain", "DialogState.Id", "Prompt"]
FIELDS = [
    *(*DIALOG, "ResponseOptionSet", "DefaultResponse", "OkResponse", "CancelResponse", "LastResponse"),
    *("ConditionId", "EventId", "ClientUserId", "Comment"),
    *(f"{int(Namespace.TYPES)}:{name}" for name in ("FieldNames", "FieldTypes", "FieldUnits", "OptionalFields")),
]


@dataclass
class PromptServer:
    """A server with the prompts of a station."""

    endpoint: str
    prompts: Prompts

    def condition(self) -> str:
        """Return the NodeId of the only open prompt."""
        (found,) = self.prompts.open
        return f"ns={int(Namespace.ALARMS)};s={found.id}"


@contextlib.asynccontextmanager
async def prompt_server(
    plant: Plant, context: PromptContext, role: Role = Role.OPERATOR, parts: tuple[Any, ...] = ()
) -> AsyncIterator[PromptServer]:
    """Serve the prompts of a station; anonymous clients have the role."""
    active = ActiveRuns(plant.runs, (SCOPE,))
    await active.look()
    prompts = Prompts(context, (SCOPE,), lambda: tuple(active.loaded.values()))
    added: list[ServerPart] = []

    async def add(new: NewServer) -> None:
        added.append(await show_prompts(new, prompts, plant.runs, active, "store"))

    async with served(machines=MACHINES[:1], role=role, parts=[*parts, add]) as server:
        work = added[0].works["OPC UA prompts"]
        async with background_task(work(server), "prompts"):
            yield PromptServer(server.endpoint, prompts)


async def monitored(client: AlarmClient, **more: Any) -> Any:
    """Monitor the events of the server."""
    found = await client.ask("monitor", fields=FIELDS, **more)
    assert found["status"] == "Good"
    return found


async def respond(client: AlarmClient, condition: str, index: int) -> str:
    status: str = await client.ask("call", object=condition, method=RESPOND, inputs=[["Int32", index]])
    return status


async def test_a_dialog_opens_is_answered_and_ends(plant: Plant, context: PromptContext) -> None:
    async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
        await monitored(client, where="DialogConditionType")
        await ask(plant, "J1", CHOOSE)
        event = await client.event(DialogState__Id=True)
        assert {name: event[name] for name in DIALOG} == {
            "EventType": "ns=0;i=2830",
            "ConditionName": "J1: ask",
            "SourceName": SCOPE,
            "Message": "Seat the cable",
            "Retain": True,
            "DialogState.Id": True,
            "Prompt": "Seat the cable",
        }
        assert [option["text"] for option in event["ResponseOptionSet"]] == ["Yes", "Defective"]
        responses = ("DefaultResponse", "OkResponse", "CancelResponse", "LastResponse")
        assert [event[name] for name in responses] == [-1, -1, -1, None]
        assert await respond(client, event["ConditionId"], 2) == "BadDialogResponseInvalid"
        assert await respond(client, event["ConditionId"], -1) == "BadDialogResponseInvalid"
        assert await respond(client, event["ConditionId"], 1) == "Good"
        ended = await client.event(DialogState__Id=False)
        assert (ended["Retain"], ended["LastResponse"], ended["ClientUserId"]) == (False, 1, "anonymous")
        assert ended["EventId"] != event["EventId"]
        assert await respond(client, event["ConditionId"], 1) in {"BadDialogNotActive", "BadNodeIdUnknown"}
        assert server.prompts.open == ()


async def test_a_confirmation_is_a_dialog_with_one_option(plant: Plant, context: PromptContext) -> None:
    await ask(plant)
    async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
        made = await monitored(client)
        await client.ask("call", object="i=2782", method="i=3875", inputs=[["UInt32", made["subscription"]]])
        event = await client.event(EventType="ns=0;i=2830")
        assert [option["text"] for option in event["ResponseOptionSet"]] == ["Confirm"]
        assert (event["DefaultResponse"], event["OkResponse"], event["CancelResponse"]) == (0, 0, -1)
        assert await respond(client, event["ConditionId"], 0) == "Good"
        assert (await client.event(DialogState__Id=False))["LastResponse"] == 0


async def test_a_browser_finds_the_dialog_and_its_method(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CHOOSE)
    async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
        nodes = {
            name: (status, value) for name, status, _, value in await client.ask("browse", node=server.condition())
        }
        assert nodes["DialogState/Id"] == ("Good", True)
        assert nodes["Respond"][0] == "Method"
        assert nodes["EnabledState"] == ("Good", "Enabled")
        assert await client.ask("call", object=server.condition(), method="Respond", inputs=[["Int32", 0]]) == "Good"


async def test_values_are_entered_by_our_method(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", ENTER)
    async with prompt_server(plant, context) as server, Client(server.endpoint) as client:
        node = client.get_node(server.condition())
        index = int(Namespace.TYPES)
        names, units, optional = [
            await (await node.get_child(f"{index}:{name}")).read_value()
            for name in ("FieldNames", "FieldUnits", "OptionalFields")
        ]
        assert (names, units, optional) == (["mass", "serial", "note"], ["kg", "", ""], [False, False, True])
        answer = partial(node.call_method, client.get_node(ANSWER).nodeid)
        for values, status in (
            (["12", "S1"], "BadInvalidArgument"),
            (["5"], "BadInvalidArgument"),
        ):
            with pytest.raises(ua.UaStatusCodeError) as refused:
                await answer(names[:2], values)
            assert ua.StatusCode(refused.value.code).name == status
        assert await answer(["mass", "serial"], ["5,5", "S1"]) is False
        assert server.prompts.open == ()
        with pytest.raises(ua.UaStatusCodeError) as late:
            await answer(["mass", "serial"], ["5,5", "S1"])
        assert ua.StatusCode(late.value.code).name in {"BadDialogNotActive", "BadNodeIdUnknown"}


async def test_respond_and_answer_prompt_are_of_their_kinds(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", ENTER)
    async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
        assert await respond(client, server.condition(), 0) == "BadMethodInvalid"
        for method, status in (("i=9027", "BadConditionAlreadyEnabled"), ("i=9028", "BadNotSupported")):
            assert await client.ask("call", object=server.condition(), method=method) in {status, "BadUserAccessDenied"}
        assert len(server.prompts.open) == 1


async def test_an_observer_and_an_anonymous_user_are_refused(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", prompt("confirm", role="operator"))
    for role in (Role.OBSERVER, Role.ENGINEER):
        async with prompt_server(plant, context, role) as server, alarm_client(server.endpoint) as client:
            # The observer by the role of the method; the other has no name, and the prompt asks for a person.
            assert await respond(client, server.condition(), 0) == "BadUserAccessDenied"
            assert len(server.prompts.open) == 1


async def test_exactly_one_of_many_clients_answers(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CHOOSE)
    async with prompt_server(plant, context) as server, Client(server.endpoint) as client:
        condition = ua.NodeId.from_string(server.condition())
        node = client.get_node(condition)
        calls = [
            node.call_method(ua.NodeId(9069), ua.Variant(number % 2, ua.VariantType.Int32)) for number in range(20)
        ]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(answer is None for answer in done) == 1, done


async def test_a_timed_out_prompt_ends_without_an_answer(plant: Plant, context: PromptContext, clock: Clock) -> None:
    async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
        await monitored(client)
        await ask(plant, "J1", prompt("confirm", timeout_seconds=5))
        await client.event(DialogState__Id=True)
        clock.now += 6_000
        await plant.runs.signal("J1", Tick())
        ended = await client.event(DialogState__Id=False)
        assert (ended["LastResponse"], ended["ClientUserId"], ended["Comment"]) == (None, "", "timed out")


async def test_a_restarted_server_shows_the_same_event_id(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CONFIRM)
    ids = []
    for _ in range(2):
        async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
            made = await monitored(client)
            await client.ask("call", object="i=2782", method="i=3875", inputs=[["UInt32", made["subscription"]]])
            ids.append((await client.event(EventType="ns=0;i=2830"))["EventId"])
    assert ids[0] == ids[1]


async def test_texts_are_in_the_language_of_the_session(plant: Plant, context: PromptContext) -> None:
    await ask(plant, "J1", CHOOSE)
    async with prompt_server(plant, context) as server:
        client = Client(server.endpoint)
        client.set_locale(["de-DE"])
        async with client:
            node = await client.get_node(server.condition()).get_child("0:ResponseOptionSet")
            options = await node.read_value()
    assert [option.Text for option in options] == ["Ja", "Defective"]


async def test_first_of_two_people_is_an_event_of_its_own(plant: Plant, context: PromptContext) -> None:
    async with prompt_server(plant, context) as server, alarm_client(server.endpoint) as client:
        await monitored(client)
        await ask(plant, "J1", prompt("confirm", second_person=True))
        opened = await client.event(DialogState__Id=True)
        for number, (name, is_open) in enumerate((("anna", True), ("bert", False))):
            person = Person(name, Role.OPERATOR)
            await server.prompts.answer(server.prompts.open[0].id, GivenAnswer(), person, "test", str(number))
            event = await client.event(DialogState__Id=is_open)
            assert event["EventId"] != opened["EventId"]
            assert event["Retain"] is is_open
            opened = event
        assert opened["ClientUserId"] == "anna and bert"
