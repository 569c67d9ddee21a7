"""What a decision changed of a run, and its compact text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Run
from edge.sfc.signal import Advanced, Phase


class ActionChange(Struct, frozen=True):
    """An association in a new state, or a new attempt; `state` is None when the association was removed."""

    key: AssociationKey
    state: ActionState | None


class CommandChange(Struct, frozen=True):
    """A command that was requested."""

    phase: Phase
    step: str
    action: str


class Changes(Struct, frozen=True):
    """What a decision changed: actions in the order of the recipe, commands and steps in the order of the decision.

    A step is paired with whether it became active.
    """

    actions: tuple[ActionChange, ...] = ()
    commands: tuple[CommandChange, ...] = ()
    steps: tuple[tuple[str, bool], ...] = ()


def changes_of(net: Net, before: Run, advanced: Advanced) -> Changes:
    """Return what a single decision changed of a run."""
    after = advanced.run
    changed = []
    for kind, key in after.touched:
        if kind == "action":
            was, now = before.associations.get(key), after.associations.get(key)
            if now is None:
                changed.append(ActionChange(key, None))
            elif was is None or (was.state, was.attempt) != (now.state, now.attempt):
                changed.append(ActionChange(key, now.state))
    if len(changed) > 1:
        changed.sort(key=lambda action_change: (net.actions[action_change.key.latest].index, action_change.key))
    commands = tuple(CommandChange(request.phase, request.step, request.action) for request in advanced.requests)
    return Changes(tuple(changed), commands, tuple((step.step, step.active) for step in advanced.steps))


def first_completed(actions: Sequence[ActionChange]) -> AssociationKey | None:
    """Return the key of the first completed action, that of its latest activation; None when none is completed."""
    for action in actions:
        if action.state is ActionState.COMPLETED:
            return action.key.latest
    return None


_STATES: Final = {
    ActionState.PENDING: "p",
    ActionState.DISPATCHED: "d",
    ActionState.WAITING: "w",
    ActionState.COMPLETED: "c",
    ActionState.FAILED: "f",
    ActionState.TIMED_OUT: "t",
    ActionState.STOPPED: "s",
    ActionState.UNKNOWN: "u",
    None: "x",
}
_PHASES: Final = {Phase.START: "B", Phase.STOP: "T", Phase.RESET: "Q", Phase.PAUSE: "P", Phase.RESUME: "C"}
_DISPATCHING: Final = {Phase.START: "S", Phase.RESET: "R"}
"""The letters of a command together with the dispatch of its action."""
_USUAL_WAY: Final = ">"
_STATE_OF: Final = {letter: state for state, letter in _STATES.items()}
_PHASE_OF: Final = {letter: phase for letters in (_PHASES, _DISPATCHING) for phase, letter in letters.items()}
_TOKEN: Final = re.compile(r"([+-])([0-9]+)|([0-9]+)(?:\.([0-9]+))?([A-Za-z])")


def encode_changes(net: Net, changes: Changes) -> str:
    """Return changes as text: `2c3S-1+2` for action 2 completed, 3 dispatched and started, step 1 left, 2 entered.

    Numbers are places in the recipe; `3.1f` is attempt 1 of action 3, which was left behind. `2c3S>` is the usual way:
    the step of the completed action is left, and that of the started one is entered.
    """
    places = [(_place(net, command), command.phase) for command in changes.commands]
    commanded = {place for place, phase in places if phase in _DISPATCHING}
    dispatched, tokens = set(), []
    for change in changes.actions:
        place = net.actions[change.key.latest].index
        if change.state is ActionState.DISPATCHED and place in commanded and not change.key.is_left_behind:
            dispatched.add(place)
        else:
            attempt = f".{change.key.attempt}" if change.key.is_left_behind else ""
            tokens.append(f"{place}{attempt}{_STATES[change.state]}")
    for place, phase in places:
        letter = _PHASES[phase]
        if phase in _DISPATCHING and place in dispatched:
            dispatched.discard(place)
            letter = _DISPATCHING[phase]
        tokens.append(f"{place}{letter}")
    if changes.steps and changes.steps == _usual_way(changes.actions, changes.commands):
        return "".join([*tokens, _USUAL_WAY])
    tokens += (f"{'+' if active else '-'}{net.steps[step].index}" for step, active in changes.steps)
    return "".join(tokens)


def _usual_way(actions: Sequence[ActionChange], commands: Sequence[CommandChange]) -> tuple[tuple[str, bool], ...]:
    """Return the steps that change when the first completed action is followed by the first command."""
    done = first_completed(actions)
    return ((done.step, False), (commands[0].step, True)) if done is not None and commands else ()


def _place(net: Net, command: CommandChange) -> int:
    """Return the place of the first association in the recipe that requests such a command."""
    resets = command.phase is Phase.RESET
    named = [net_action for net_action in net.steps[command.step].actions if net_action.name == command.action]
    for item in named:
        if item.rule.resets is resets:
            return item.index
    return named[0].index


def decode_changes(net: Net, text: str) -> Changes:
    """Read the text of changes; raises ValueError or LookupError for any other text."""
    keys, names = list(net.actions), list(net.steps)
    actions, commands, steps, end = [], [], [], 0
    is_usual = text.endswith(_USUAL_WAY)
    text = text.removesuffix(_USUAL_WAY)
    while match := _TOKEN.match(text, end):
        end = match.end()
        sign, step, place, attempt, letter = match.groups()
        if sign:
            steps.append((names[int(step)], sign == "+"))
            continue
        key = keys[int(place)]
        if letter in _PHASE_OF:
            commands.append(CommandChange(_PHASE_OF[letter], key.step, key.action))
        if letter in _DISPATCHING.values():
            actions.append(ActionChange(key, ActionState.DISPATCHED))
        elif letter not in _PHASE_OF:
            actions.append(ActionChange(key.left_behind(int(attempt or 0)), _STATE_OF[letter]))
    if end != len(text):
        raise ValueError(f"{text!r} is not a list of changes")
    actions.sort(key=lambda action_change: (net.actions[action_change.key.latest].index, action_change.key))
    return Changes(tuple(actions), tuple(commands), _usual_way(actions, commands) if is_usual else tuple(steps))
