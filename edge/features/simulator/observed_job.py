"""One job as an observer at the broker sees it: its states, steps, commands, answers and events."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from edge.model.cloudevent import CloudEvent
from edge.model.event_types import JOB_RESPONSE_TYPE, PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobResponse, JobStatusEvent, Parameter, State
from edge.model.job_state import JobState
from edge.model.recipe import Interaction, Recipe

COMPLETED = "Ended (Completed)"


class ObservedStep(Struct):
    """A step of the recipe; instants are milliseconds since the epoch."""

    name: str
    active: bool = False
    activated_at: int | None = None


class ObservedAction(Struct):
    """An action of the recipe with its sent parameters and its result; instants as in ObservedStep."""

    name: str
    step: str
    type_id: str
    pushed: bool
    parameters: Mapping[str, Any]
    equipment: str = ""
    sent: Mapping[str, Any] = field(default_factory=dict)
    began_at: int | None = None
    came_at: int | None = None
    result: Any = None
    error: str = ""


class JobLogEntry(Struct, frozen=True):
    """A log entry for people: instant, kind and text."""

    at: int
    kind: str
    text: str


class ObservedJob:
    """One job of one scope, seen through its messages; `now` is in milliseconds since the epoch."""

    def __init__(self, scope: str, job_order_id: str, recipe: Recipe) -> None:
        self.scope = scope
        self.job_order_id = job_order_id
        self.status = ""
        self.log_entries: list[JobLogEntry] = []
        self.steps = {step.name: ObservedStep(step.name) for step in recipe.steps}
        left = {transition.source for transition in recipe.transitions}
        inner = {name for branch in recipe.branches for path in branch.branches for name in path}
        self._last_steps = self.steps.keys() - left - inner
        """The steps at which a job ends: it reaches one of them."""
        self.actions = {
            action.name: ObservedAction(
                action.name,
                action.step,
                action.type_id,
                action.interaction is Interaction.PUSH_COMMAND,
                action.parameters,
            )
            for action in recipe.actions
        }
        self.response: JobResponse | None = None
        self._commands: dict[str, ObservedAction] = {}
        self._answered: set[str] = set()
        self._events: dict[str, CloudEvent] = {}

    @property
    def commands(self) -> int:
        """Return the number of sent commands."""
        return len(self._commands)

    @property
    def active_steps(self) -> int:
        """Return the number of steps that have been active."""
        return sum(step.activated_at is not None for step in self.steps.values())

    @property
    def milliseconds(self) -> int:
        """Return the duration of the job according to its response; 0 before its end."""
        if self.response is None or self.response.start_time is None or self.response.end_time is None:
            return 0
        return round((self.response.end_time - self.response.start_time).total_seconds() * 1000)

    @property
    def has_ended(self) -> bool:
        """Return whether the job has ended or aborted according to its response."""
        states = self.response.job_state if self.response else ()
        return bool(states) and states[0].state_number in {JobState.ENDED, JobState.ABORTED}

    def faults(self) -> list[str]:
        """Return the deviations of the ended job from the recipe; empty without deviations."""
        return list(self._faults())

    def take_job_message(self, event: CloudEvent, now: int) -> None:
        """Apply a job message of the station."""
        match event.type:
            case t if t == STATUS_EVENT_TYPE:
                status_event = msgspec.convert(event.data, JobStatusEvent)
                if status_event.job_order.job_order_id == self.job_order_id:
                    self.status = status_text(status_event.job_state)
                    self._log(now, "state", self.status)
            case t if t == JOB_RESPONSE_TYPE:
                response = msgspec.convert(event.data, JobResponse)
                if response.job_order_id == self.job_order_id:
                    self.response = response
            case t if t == PROGRESS_TYPE and event.data["job_order_id"] == self.job_order_id:
                for change in event.data["steps"]:
                    self._take_step(change["step"], now, active=change["active"])
            case _:
                pass

    def take_equipment_message(self, equipment: str, channel: str, event: CloudEvent, now: int) -> None:
        """Apply a message between the station and its equipment; `channel` is the last level of the topic."""
        match channel:
            case "commands" if event.data["job_id"] == self.job_order_id:
                self._take_command(equipment, event, now)
            case "answers" if event.causationid in self._commands:
                self._take_answer(event.causationid, event, now)
            case "events":
                self._events[event.id] = event
            case "tasks" if (happened := self._events.pop(event.causationid or "", None)) and event.data:
                if event.data["job_id"] == self.job_order_id:
                    self._take_event(equipment, event.data["action"], happened, now)
            case _:
                pass

    def note_command(
        self, command_id: str, name: str, equipment: str, now: int, parameters: Mapping[str, Any] | None = None
    ) -> None:
        """Record a sent command, by default with the recipe's parameters; a repeated one only adds a log entry."""
        action = self.actions[name]
        if command_id not in self._commands:
            self._commands[command_id] = action
            action.equipment, action.began_at = equipment, now
            action.sent = action.parameters if parameters is None else parameters
        self._log(now, "command", f"{name} → {equipment}  {plain_text(action.sent)}")

    def note_answer(self, command_id: str, data: Any, now: int, error: str = "", *, came_at: int | None = None) -> None:
        """Record the answer to a sent command, with its instant if known; ignore answers to other commands."""
        if (action := self._commands.get(command_id)) is None:
            return
        self._answered.add(command_id)
        action.came_at, action.result, action.error = came_at, data, error
        came = f"failed: {error}" if error else plain_text(data)
        self._log(now, "answer", f"{action.name} ← {action.equipment}  {came}")

    def _take_step(self, name: str, now: int, *, active: bool) -> None:
        step = self.steps[name]
        step.active = active
        if active:
            step.activated_at = now
            self._log(now, "step", name)

    def _take_command(self, equipment: str, event: CloudEvent, now: int) -> None:
        name, phase = event.data["action"], event.extensions.get("phase", "start")
        if phase == "start":
            self.note_command(event.id, name, equipment, now, event.data["parameters"])
        else:
            self._log(now, "command", f"{phase} {name} → {equipment}  {plain_text(self.actions[name].sent)}")

    def _take_answer(self, command_id: str, event: CloudEvent, now: int) -> None:
        error = (event.mdcserrormessage or event.mdcserrorkind or "") if event.mdcserrorkind else ""
        self.note_answer(command_id, event.data, now, error, came_at=now)

    def _take_event(self, equipment: str, name: str, event: CloudEvent, now: int) -> None:
        action = self.actions[name]
        action.equipment, action.came_at, action.result = equipment, now, event.data
        self._log(now, "event", f"{name} ← {equipment}  {plain_text(event.data)}")

    def _log(self, now: int, kind: str, text: str) -> None:
        self.log_entries.append(JobLogEntry(now, kind, text.rstrip()))

    def _faults(self) -> Iterator[str]:
        state = status_text(self.response.job_state) if self.response else "no response"
        if state != COMPLETED:
            reason = self.response.description if self.response else None
            yield f"the job is {state}" + (f": {reason.text}" if reason else "")
            if self.has_ended:
                # The other deviations follow from this one.
                return
        if self.status != state:
            yield f"the last status event says {self.status or 'nothing'}, the response {state}"
        ended = any(self.steps[name].activated_at is not None for name in self._last_steps)
        for step in self.steps.values():
            if step.activated_at is None and not (ended and step.name in self._last_steps):
                yield f"step {step.name} was never active"
        for command_id, action in self._commands.items():
            if command_id not in self._answered:
                yield f"the command {action.name} to {action.equipment} was not answered"
        for action in self.actions.values():
            if action.pushed and action not in self._commands.values():
                yield f"no command was sent for {action.name}"
            if not action.pushed and action.came_at is None:
                yield f"no event was taken for {action.name}"


def status_text(states: tuple[State, ...]) -> str:
    """Return the state of a job as text for people: `Ended (Completed)`."""
    top, *below = [state.state_text.text for state in states] or [""]
    return f"{top} ({below[0]})" if below else top


def plain_text(data: object) -> str:
    """Return data as text for people: `torque 85.2, angle 41.5`."""
    match data:
        case dict():
            return ", ".join(f"{name} {plain_text(value)}" for name, value in data.items())
        case bool():
            return "yes" if data else "no"
        case None:
            return ""
        case _:
            return str(data)


# A result over OPC UA has many values; these are the most important ones.
_SHOWN = ("evaluation", "torque", "angle", "result_state", "content")


def apply_station_report(job: ObservedJob, event: CloudEvent, devices: Mapping[str, str], now: int) -> None:
    """Record the commands to `devices` (by `type_id`) from the progress of a job, the results from its response."""
    match event.type:
        case t if t == PROGRESS_TYPE and event.data["job_order_id"] == job.job_order_id:
            for command in event.data.get("commands", ()):
                if command["phase"] == "start" and command["type_id"] in devices:
                    job.note_command(command["action"], command["action"], devices[command["type_id"]], now)
        case t if t == JOB_RESPONSE_TYPE:
            response = msgspec.convert(event.data, JobResponse)
            if response.job_order_id == job.job_order_id and response.end_time is not None:
                for parameter in response.job_response_data or ():
                    action = job.actions.get(parameter.id)
                    if action is not None and action.type_id in devices:
                        job.note_answer(parameter.id, _shown(parameter), now)
        case _:
            pass


def _shown(parameter: Parameter) -> Any:
    if not parameter.subparameters:
        return parameter.value
    return {
        subparameter.id: _measured(subparameter)
        for subparameter in parameter.subparameters
        if subparameter.id in _SHOWN
    }


def _measured(parameter: Parameter) -> Any:
    unit = parameter.engineering_units and parameter.engineering_units.display_name
    return f"{parameter.value} {unit.text}" if unit else parameter.value
