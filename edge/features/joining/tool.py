"""The tool of a joining system: prepared for a command, started, and made safe again."""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from msgspec import Struct

from edge.features.joining.conversion import COMMAND_ID, entities, is_command_id, process
from edge.features.joining.lock import ToolLock
from edge.features.joining.methods import STEP_SECONDS, IjtMethods
from edge.features.joining.programs import JoiningPrograms, counter_calls, selected_joint
from edge.foundation.errors import Refused, unwrap_group
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.station.equipment import Command

_REASON = "requested by the station"

_log = structlog.get_logger(__name__)


class OpenRelease(Struct):
    """The command whose tool has to be made safe while no command needs it, beyond one connection."""

    command: Command | None = None
    is_running: bool = False


class JoiningTool:
    """One tool, identified by its ProductInstanceUri; an empty `uri` means the only tool.

    `release` keeps what is still to be made safe. Every call raises Refused when the controller declines it,
    Unavailable when the connection is lost.
    """

    def __init__(
        self, methods: IjtMethods, uri: str, programs: JoiningPrograms, lock: ToolLock, release: OpenRelease
    ) -> None:
        self.lock = lock
        self._release = release
        self._programs = programs
        self._methods = methods
        self._uri = uri

    async def pending_command(self) -> str | None:
        """Return the id of the command whose result is pending at the tool; empty when no result is pending.

        Return None when the controller cannot report identifiers.
        """
        if "SendIdentifiers" not in self._methods or "GetIdentifiers" not in self._methods:
            return None
        (found,) = await self._methods.call("GetIdentifiers", self._uri, [COMMAND_ID], output_count=1)
        # A controller may report all identifiers of the tool, not only the one that it is asked for.
        ids = [value for value in found or () if isinstance(value, Mapping) and isinstance(value.get("EntityId"), str)]
        return next((identifier["EntityId"] for identifier in reversed(ids) if is_command_id(identifier)), "")

    async def occupant(self) -> str | None:
        """Return `pending_command`; None also when the controller declines it or does not answer: a stop continues."""
        try:
            async with asyncio.timeout(STEP_SECONDS):
                return await self.pending_command()
        except (Refused, TimeoutError) as error:
            _log.info("identifiers not read", reason=str(error) or "no answer")
            return None

    async def prepare(self, command: Command) -> None:
        """Enable the tool, replace its identifiers with those of a command, and set the counters that it names.

        Raises Refused before anything is enabled when the controller does not have the joining process or the joint.
        """
        methods, identifiers = self._methods, entities(command)
        await self._programs.check(command)
        await self.lock.enable()
        self._release.command = None
        await self._reset_identifiers(command)
        if "SendIdentifiers" in methods:
            await methods.call("SendIdentifiers", self._uri, identifiers)
        elif "SendTextIdentifiers" in methods:
            await methods.call("SendTextIdentifiers", self._uri, [identifier["EntityId"] for identifier in identifiers])
        elif "StartJoiningProcess" not in methods:
            raise Refused("device", "the controller takes no identifiers: its results could not be distinguished")
        await self._set_counters(command)

    async def start(self, command: Command) -> None:
        """Start the joining of a command, or select its process if the operator starts it."""
        methods, named = self._methods, process(command)
        if joint := selected_joint(command):
            # The controller selects the process that belongs to the joint.
            await self._call_required("SelectJoint", *joint)
        if command.parameters.get("start") is False:
            await self._select(named)
        elif named and "StartJoiningProcess" in methods:
            await methods.call("StartJoiningProcess", self._uri, named, entities(command))
        else:
            await self._select(named)
            # Without the method, the operator starts the joining with the trigger of the tool.
            if "StartSelectedJoining" in methods:
                await methods.call("StartSelectedJoining", self._uri, bool(named))

    async def release(self, command: Command) -> None:
        """Reset the process selection and the identifiers of a command that did not start; refusals are logged."""
        for step, refusal in (await self._attempt_together(self._release_steps(command))).items():
            _log.info("tool release declined", step=step, reason=refusal)

    async def rest(self) -> None:
        """Stop what a command has left, else disable the tool if the lock is on and no other system has disabled it."""
        if self._release.command is not None:
            await self.make_safe(self._release.command, is_running=self._release.is_running)
        elif self.lock.is_on and not self.lock.problem:
            await self.lock.disable()

    def make_safe_at_rest(self, command: Command, *, is_running: bool) -> None:
        """Record that a rest has to make the tool safe after a command, until the controller confirms it."""
        self._release.command, self._release.is_running = command, is_running

    async def make_safe(self, command: Command, *, is_running: bool) -> None:
        """Abort a running joining, disable the tool, deselect its process and drop its identifiers.

        A declined or unanswered step does not prevent the others. Raises Refused when the tool may still be able to
        move.
        """
        steps: dict[str, tuple[Any, ...]] = {}
        if is_running and "AbortJoiningProcess" in self._methods:
            steps["AbortJoiningProcess"] = (process(command), _REASON)
        if "EnableAsset" in self._methods:
            steps["EnableAsset"] = (False,)
        declined = await self._attempt(steps)
        declined |= await self._attempt_together(self._release_steps(command))
        stops = "EnableAsset" if "EnableAsset" in steps else "AbortJoiningProcess"
        if stops not in steps and is_running:
            raise Refused("device", "the controller has no method to abort a joining")
        if stops in declined and not await self.lock.is_disabled():
            reasons = (reason for step, reason in declined.items() if step in steps)
            raise Refused("device", Text.of("the tool may still be enabled: {reasons}", reasons="; ".join(reasons)))
        if self._release.command is not None and self._release.command.command_id == command.command_id:
            self._release.command = None
        for step, reason in declined.items():
            _log.warning("stop step declined", command=command.command_id, step=step, reason=reason)

    async def _set_counters(self, command: Command) -> None:
        for method, arguments in counter_calls(command):
            await self._call_required(method, process(command), *arguments)

    async def _call_required(self, name: str, *arguments: Any) -> None:
        if name not in self._methods:
            raise Refused("device", Text.of("the controller has no method {name}", name=name))
        await self._methods.call(name, self._uri, *arguments)

    def _release_steps(self, command: Command) -> dict[str, tuple[Any, ...]]:
        names = [entity["Name"] for entity in entities(command)]
        steps: dict[str, tuple[Any, ...]] = {"DeselectJoiningProcess": (), "ResetIdentifiers": (names,)}
        return {name: arguments for name, arguments in steps.items() if name in self._methods}

    async def _attempt(self, steps: Mapping[str, tuple[Any, ...]]) -> dict[str, str]:
        """Call methods one after the other; return the reason of each declined or unanswered call."""
        reasons = {name: await self._try(name, arguments) for name, arguments in steps.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    async def _attempt_together(self, steps: Mapping[str, tuple[Any, ...]]) -> dict[str, str]:
        """Call methods that do not depend on each other; return as `_attempt`."""
        with unwrap_group():
            async with TaskGroup() as tasks:
                attempts = {name: tasks.create_task(self._try(name, step)) for name, step in steps.items()}
        reasons = {name: task.result() for name, task in attempts.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    async def _try(self, name: str, arguments: tuple[Any, ...]) -> str | None:
        """Call a method; return the reason why it was declined or not answered, None when it was carried out."""
        try:
            await self._methods.call_step(name, self._uri, *arguments)
        except Refused as refusal:
            return refusal.message
        return None

    async def _select(self, named: dict[str, str]) -> None:
        if not named:
            return
        if "SelectJoiningProcess" not in self._methods:
            raise Refused("device", "the controller has no method to select a joining process")
        await self._methods.call("SelectJoiningProcess", self._uri, named)

    async def _reset_identifiers(self, command: Command) -> None:
        # A controller may report an error when there is nothing to reset.
        steps = {name: step for name, step in self._release_steps(command).items() if name == "ResetIdentifiers"}
        await self._attempt(steps)
