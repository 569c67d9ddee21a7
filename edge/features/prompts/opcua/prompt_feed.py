"""Prompts as conditions in OPC UA: clients see them open and end, and answer them.

    <machine> / Prompts / <job: action> / DialogState, Prompt, ResponseOptionSet, ..., Respond()

`Respond` has the index of an option (OPC 10000-9, 5.6.3); a prompt that asks for values has `AnswerPrompt`. The person
is the user of the session.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import structlog
from asyncua import ua
from asyncua.server.address_space import NodeData

from edge.app.parts import GatewayParts
from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, Prompts
from edge.features.prompts.opcua.prompt_view import (
    ANSWER_METHOD,
    RESPOND,
    PromptView,
    add_prompt_types,
    choice_of,
    response_of,
    shape_of,
)
from edge.features.prompts.open_prompt import OpenPrompt, ended_attempt
from edge.features.prompts.prompt import PromptKind
from edge.features.prompts.prompt_changes import PromptWatch
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import language_for
from edge.opcua.access import CALLER, LOCALES
from edge.opcua.call_diagnostics import ExplainedResult
from edge.opcua.event_filter import EventRecord
from edge.opcua.server_core import ServerCore
from edge.station.active_runs import ActiveRuns
from edge.station.decision import LoadedJob
from edge.station.runs import Runs
from edge.store.background import Isolated, restart_on_outage
from edge.store.instance_leases import load_identity
from edge.uaserver.condition_objects import ConditionObjects
from edge.uaserver.condition_space import EVENT_AND_COMMENT, ArgumentKind, ConditionSource, condition_result
from edge.uaserver.events import notifiers_of
from edge.uaserver.namespaces import Namespace, alarms_uri
from edge.uaserver.parts import NewServer, ServerPart

logger = structlog.get_logger(__name__)

_I: Final = ua.ObjectIds
_S: Final = ua.StatusCodes
T: Final = ua.VariantType
_SOURCE: Final = "urn:microdcs-edge:opcua"
_SHOWN_WITHIN_S: Final = 1.0
"""The longest time that a method waits for the conditions to show its effect; after it the answer is sent anyway."""
_METHODS: Final[Mapping[ua.NodeId, tuple[ArgumentKind, ...]]] = MappingProxyType(
    {
        RESPOND: (ArgumentKind(T.Int32),),
        ANSWER_METHOD: (ArgumentKind(T.String, is_array=True), ArgumentKind(T.String, is_array=True)),
        ua.NodeId(_I.ConditionType_Enable): (),
        ua.NodeId(_I.ConditionType_Disable): (),
        ua.NodeId(_I.ConditionType_AddComment): EVENT_AND_COMMENT,
    }
)
_OF_EVERY_CONDITION: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Enable": _S.BadConditionAlreadyEnabled,
        # A recipe waits for the answer: a prompt has no other states, and no comments.
        "Disable": _S.BadNotSupported,
        "AddComment": _S.BadNotSupported,
    }
)
_REFUSALS: Final[Mapping[str, int]] = MappingProxyType(
    {"unknown_prompt": _S.BadNodeIdUnknown, "not_open": _S.BadDialogNotActive, "invalid_answer": _S.BadInvalidArgument}
)
"""By the kind of a refusal; the others are about the person: BadUserAccessDenied."""


class PromptConditions:
    """The open prompts of a server as conditions, by their ids."""

    def __init__(self, core: ServerCore, sources: Mapping[str, ua.NodeId]) -> None:
        self._objects = ConditionObjects(core, "Prompts", "The questions to the people at the station.")
        self._sources = sources
        self._folders: Mapping[str, str] = {}

    def add_sources(self, scopes: Collection[str]) -> None:
        """Add the folder of prompts to each machine."""
        events = 1 << ua.EventNotifier.SubscribeToEvents
        self._folders = {scope: self._objects.add_source(scope, self._sources[scope], events) for scope in scopes}

    def ids(self) -> list[str]:
        """Return the ids of the open prompts."""
        return self._objects.ids()

    def view_of(self, prompt: str) -> PromptView | None:
        """Return an open prompt; None for an unknown one."""
        view: PromptView | None = self._objects.view_of(prompt)
        return view

    def retained(self, condition: str, notifier: ua.NodeId | None) -> Sequence[EventRecord]:
        """Return the event of an open prompt, where the node has it."""
        view = self.view_of(condition)
        if view is None or (notifier is not None and notifier not in notifiers_of(view.source)):
            return []
        return [self._event_of(view)]

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return the node of a prompt. Raises KeyError when there is none."""
        return self._objects.node(node_id)

    async def show(self, prompt: OpenPrompt) -> None:
        """Show a prompt that opened, or has a first of two answers, and publish it."""
        before = self.view_of(prompt.id)
        at = prompt.since if before is None and not prompt.first else now_ms()
        view = PromptView(prompt, self._sources[prompt.scope], at, by=prompt.first)
        if before is not None and before.event_id == view.event_id:
            return
        self._objects.put(prompt.id, view, shape_of(prompt.kind), self._folders[prompt.scope])
        await self._publish(view)

    async def hide(self, view: PromptView) -> None:
        """Publish a prompt that has ended, and remove it."""
        prompt = view.prompt
        self._objects.put(prompt.id, view, shape_of(prompt.kind), self._folders[prompt.scope])
        await self._publish(view)
        self._objects.remove(prompt.id)
        await self._objects.notify(prompt.id)

    async def _publish(self, view: PromptView) -> None:
        await self._objects.publish(view.source, lambda: [self._event_of(view)])
        await self._objects.notify(view.prompt.id)

    def _event_of(self, view: PromptView) -> EventRecord:
        return self._objects.event_of(view.prompt.id, view, shape_of(view.prompt.kind))


class PromptFeed:
    """Shows the prompts of the active runs; a change of a run is shown before the next one."""

    def __init__(self, conditions: PromptConditions, prompts: Prompts, active: ActiveRuns, runs: Runs) -> None:
        self._conditions = conditions
        self._prompts = prompts
        self._active = active
        self._runs = runs
        self._waiting: asyncio.Queue[tuple[str, LoadedJob | None]] = asyncio.Queue()

    async def run(self, _server: object) -> None:
        """Show all open prompts, then each change, until cancelled."""
        watch = PromptWatch(self._prompts, self._queue)
        self._active.listeners.append(watch.note)
        try:
            for loaded in tuple(self._active.loaded.values()):
                watch.note(None, loaded)
            await restart_on_outage("OPC UA prompts", self._follow)
        finally:
            self._active.listeners.remove(watch.note)

    def _queue(self, job_id: str, loaded: LoadedJob | None) -> None:
        self._waiting.put_nowait((job_id, loaded))

    async def _follow(self) -> None:
        while True:
            job_id, loaded = await self._waiting.get()
            try:
                with Isolated(logger, "prompt not shown", job=job_id):
                    await self._show(job_id, loaded)
            finally:
                self._waiting.task_done()

    async def _show(self, job_id: str, loaded: LoadedJob | None) -> None:
        prompts = self._prompts.of_job(loaded) if loaded else ()
        is_open = {prompt.id for prompt in prompts}
        views = [view for id_ in self._conditions.ids() if (view := self._conditions.view_of(id_)) is not None]
        for view in views:
            if view.prompt.job_id == job_id and view.prompt.id not in is_open:
                await self._conditions.hide(await self._ended(view, loaded))
        for prompt in prompts:
            await self._conditions.show(prompt)

    async def _ended(self, view: PromptView, loaded: LoadedJob | None) -> PromptView:
        """Return a prompt with its end: the answer and the person, or how else it ended."""
        with contextlib.suppress(Unavailable):
            # A run that has ended is not among the active ones any more.
            loaded = loaded or await self._runs.load_readable(view.prompt.job_id)
        attempt = ended_attempt(loaded, view.prompt.id) if loaded else None
        if attempt is None:
            return PromptView(view.prompt, view.source, now_ms(), is_open=False)
        return PromptView(
            view.prompt,
            view.source,
            attempt.ended_at or now_ms(),
            is_open=False,
            by=attempt.resolved_by,
            response=response_of(view.prompt, attempt.result),
            outcome=str(attempt.state.text),
        )

    async def settle(self) -> None:
        """Wait until the conditions show every change so far."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOWN_WITHIN_S):
                await self._waiting.join()


class PromptMethods:
    """The methods of prompts."""

    def __init__(self, prompts: Prompts, conditions: PromptConditions, feed: PromptFeed) -> None:
        self._conditions = conditions
        self._prompts = prompts
        self._feed = feed

    @property
    def source(self) -> ConditionSource:
        """The prompts as conditions with these methods."""
        return ConditionSource(self._conditions, _METHODS, self._call)

    async def _call(self, object_id: ua.NodeId, name: str, arguments: Sequence[Any]) -> ua.CallMethodResult | None:
        if object_id.NamespaceIndex != Namespace.ALARMS or not isinstance(object_id.Identifier, str):
            return None
        prompt = next((item for item in self._prompts.open if item.id == object_id.Identifier), None)
        if name in _OF_EVERY_CONDITION:
            return condition_result(_OF_EVERY_CONDITION[name]) if prompt else None
        try:
            if prompt is None:
                raise await self._prompts.refusal_of(object_id.Identifier)
            return await self._answer(prompt, name, arguments)
        except Refused as error:
            refusal = condition_result(_REFUSALS.get(error.kind, _S.BadUserAccessDenied))
            return ExplainedResult(refusal, error.text.in_language(language_for(LOCALES.get())))
        except Unavailable as error:
            logger.warning("OPC UA method unavailable", method=name, reason=error.message)
            return condition_result(_S.BadResourceUnavailable)

    async def _answer(self, prompt: OpenPrompt, name: str, arguments: Sequence[Any]) -> ua.CallMethodResult:
        match prompt.kind, name, arguments:
            case PromptKind.ENTER, "AnswerPrompt", (names, values):
                if names is None or values is None or len(names) != len(values) or len(set(names)) != len(names):
                    return condition_result(_S.BadInvalidArgument)
                given = GivenAnswer(values=dict(zip(names, values, strict=True)))
            case PromptKind.CONFIRM | PromptKind.CHOOSE, "Respond", (response,):
                choice = choice_of(prompt, response)
                if choice is None:
                    return condition_result(_S.BadDialogResponseInvalid)
                given = GivenAnswer(choice=choice)
            case _:
                return condition_result(_S.BadMethodInvalid)
        caller = CALLER.get()
        person = Person(caller.name, caller.role) if caller.name else Person("anonymous")
        # A call has no id: after the answer, a repeated call finds the prompt ended.
        answered = await self._prompts.answer(prompt.id, given, person, _SOURCE, str(uuid.uuid4()), prompt.scope)
        await self._feed.settle()
        result = condition_result(_S.Good)
        if name == "AnswerPrompt":
            result.OutputArguments = [ua.Variant(answered.awaits_second, T.Boolean)]
        return result


async def show_prompts(new: NewServer, prompts: Prompts, runs: Runs, active: ActiveRuns, store_id: str) -> ServerPart:
    """Add the open prompts of a store with this id to a server that is made."""
    add_prompt_types(new.core)
    conditions = PromptConditions(new.core, new.sources)
    feed = PromptFeed(conditions, prompts, active, runs)
    await new.conditions.add(alarms_uri(store_id), PromptMethods(prompts, conditions, feed).source)
    conditions.add_sources(prompts.scopes)
    return ServerPart(works={"OPC UA prompts": feed.run})


async def add_prompts(core: GatewayParts, new: NewServer) -> ServerPart:
    """Add the open prompts of a gateway to a server that is made. Raises Unavailable."""
    return await show_prompts(new, core.ports["prompts"], core.runs, core.active_runs, await load_identity(core.store))
