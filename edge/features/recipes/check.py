"""Checks a recipe: finds what stands still, what no run does, and what is probably not intended."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from edge.expression.value import UNKNOWN
from edge.features.recipes.abstract_data import shown_values
from edge.features.recipes.exploration import Exploration, ExploredMove, ExploredState, explore
from edge.features.recipes.finding import ElementType, FindingKind, FindingLevel, RecipeElement, RecipeFinding, finding
from edge.features.recipes.footprint import names_of_state
from edge.features.recipes.gaps import gap_findings
from edge.features.recipes.known_types import type_findings
from edge.features.recipes.members import member_findings
from edge.features.recipes.witness import script_to
from edge.foundation.text import Text, join_texts
from edge.model.recipe import Intervention
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Run


class CheckResult(Struct, frozen=True):
    """The findings, faults first; not `is_complete` when the bound was met before everything was explored."""

    findings: tuple[RecipeFinding, ...]
    is_complete: bool = True

    @property
    def faults(self) -> tuple[RecipeFinding, ...]:
        """The findings that forbid a release."""
        return tuple(item for item in self.findings if item.level is FindingLevel.FAULT)


def check_net(net: Net, members: Collection[str] = (), types: Collection[str] = ()) -> CheckResult:
    """Return the findings about a recipe that can be loaded.

    `members` are those of results of known equipment, `types` the commands and events of the equipment of a station.
    """
    exploration = explore(net)
    findings = [
        *_standstills(exploration),
        *gap_findings(exploration),
        *_swallowed(exploration),
        *member_findings(net, members),
        *type_findings(net, types),
        *_endless_loops(exploration),
        *_without_limit(exploration),
    ]
    ordered = sorted(
        findings, key=lambda item: (list(FindingLevel).index(item.level), list(FindingKind).index(item.kind))
    )
    return CheckResult(tuple(ordered), exploration.is_complete)


def step_element(net: Net, name: str) -> RecipeElement:
    """Return a step as the element of a finding."""
    return RecipeElement(ElementType.STEP, name, net.steps[name].index)


def action_element(net: Net, key: AssociationKey) -> RecipeElement:
    """Return an action as the element of a finding."""
    return RecipeElement(ElementType.ACTION, key.action, net.actions[key].index)


def _standstills(exploration: Exploration) -> Iterator[RecipeFinding]:
    """Yield one finding for each step that a run cannot leave; the shortest way to it comes first."""
    net = exploration.net
    # A case with all values says more than one in which a value is still to come.
    ordered = sorted(exploration.standstills, key=lambda still: (still.depends_on_data, _is_open(still.state)))
    reported: set[str] = set()
    for still in ordered:
        if still.step in reported:
            continue
        reported.add(still.step)
        state = still.state
        script = script_to(exploration, state)
        if still.depends_on_data:
            yield _not_exhaustive(net, still.step, state, script)
        else:
            yield _dead_end(net, still.step, state, script)


def _is_open(state: ExploredState) -> bool:
    """Return whether a name has no value yet."""
    return any(value is UNKNOWN for value in state.values.values())


def _dead_end(net: Net, step: str, state: ExploredState, script: dict[str, object] | None) -> RecipeFinding:
    locks, when = state.run.locks.held, _outcomes(net, state.run, step)
    helps = {Intervention.FORCE, Intervention.COMPLETE} & net.steps[step].interventions
    conditions = join_texts(", ", dict.fromkeys(transition.text for transition in net.steps[step].outgoing))
    if locks:
        message = Text.of(
            "step {step}: no exit can become true {when}, whatever the data, and the job keeps lock {locks}",
            step=step,
            when=when,
            locks=", ".join(locks),
        )
    else:
        message = Text.of("step {step}: no exit can become true {when}, whatever the data", step=step, when=when)
    remedy = Text.of(
        "Add a transition from {step} for this case, or correct its conditions: {conditions}.",
        step=step,
        conditions=conditions,
    )
    item = finding(
        FindingKind.LOCK_KEPT if locks else FindingKind.DEAD_END, step_element(net, step), message, remedy, script
    )
    if not helps:
        return item
    return RecipeFinding(
        kind=item.kind,
        level=FindingLevel.INFORMATION,
        element=item.element,
        message=message,
        remedy=Text.of("A person has to intervene; add a transition from {step} for this case.", step=step),
        script=script,
    )


def _outcomes(net: Net, run: Run, step: str) -> Text:
    """Return how the actions of a step ended, as a clause: `when tighten is completed`."""
    texts = [
        Text.of("{action} is {state}", action=action.name, state=association.state.text)
        for action in net.steps[step].actions
        if (association := run.associations.get(action.key)) and association.state is not ActionState.PENDING
    ]
    if not texts:
        return Text.of("once it is active")
    return Text.of("when {outcomes}", outcomes=join_texts(", ", [*texts, *_counts(net, run, step)]))


def _counts(net: Net, run: Run, step: str) -> Iterator[Text]:
    """Yield how often steps were active that the exits of a step count: `steps.Verify.count is 3`."""
    counted = {
        name: None
        for transition in net.steps[step].outgoing
        for kind, name, prop in names_of_state(transition)
        if (kind, prop) == ("steps", "count") and name in run.steps
    }
    for name in counted:
        yield Text.of("{name} is {value}", name=f"steps.{name}.count", value=str(run.steps[name].count))


def _not_exhaustive(net: Net, step: str, state: ExploredState, script: dict[str, object] | None) -> RecipeFinding:
    if state.values:
        values = join_texts(", ", [shown_values(state.values), *_counts(net, state.run, step)])
        message = Text.of("step {step}: no exit is true when {values}", step=step, values=values)
    else:
        message = Text.of("step {step}: there are data for which no exit is true", step=step)
    remedy = Text.of(
        "Add a transition from {step} for all other data, such as one with the condition always and a higher "
        "priority number.",
        step=step,
    )
    return finding(FindingKind.NOT_EXHAUSTIVE, step_element(net, step), message, remedy, script)


def _swallowed(exploration: Exploration) -> Iterator[RecipeFinding]:
    for key, number in exploration.swallowed.items():
        yield finding(
            FindingKind.FAILURE_SWALLOWED,
            action_element(exploration.net, key),
            Text.of(
                "action {action} of step {step}: when it fails the job ends as completed, and nothing was commanded or "
                "awaited since",
                action=key.action,
                step=key.step,
            ),
            Text.of(
                "Lead the failure to a step with a command or an awaited event, or remove its way out: then the job "
                "fails."
            ),
            script_to(exploration, exploration.states[number]),
        )


def _endless_loops(exploration: Exploration) -> Iterator[RecipeFinding]:
    """Yield the actions that can fail again and again; a recipe that runs for ever anyway has none."""
    net = exploration.net
    if not net.terminal:
        return
    together = _components(len(exploration.states), exploration.edges)
    keys = {
        edge.failure
        for edge in exploration.edges
        if edge.failure is not None and together[edge.before] == together[edge.after]
    }
    for key in sorted(keys, key=lambda key: net.actions[key].index):
        yield finding(
            FindingKind.ENDLESS_LOOP,
            action_element(net, key),
            Text.of(
                "action {action} of step {step}: it can fail and be repeated without end",
                action=key.action,
                step=key.step,
            ),
            Text.of("Bound the loop in its condition, such as steps.{step}.count < 3.", step=key.step),
        )


def _components(size: int, edges: Sequence[ExploredMove]) -> list[int]:
    """Return the strongly connected component of each state (Kosaraju's two searches)."""
    forth, back = [list[int]() for _ in range(size)], [list[int]() for _ in range(size)]
    for edge in edges:
        forth[edge.before].append(edge.after)
        back[edge.after].append(edge.before)
    order: list[int] = []
    seen = [False] * size
    for start in range(size):
        stack = [] if seen[start] else [(start, iter(forth[start]))]
        seen[start] = True
        while stack:
            following = next((number for number in stack[-1][1] if not seen[number]), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen[following] = True
                stack.append((following, iter(forth[following])))
    component = [-1] * size
    for root in reversed(order):
        fresh = [root] if component[root] < 0 else []
        while fresh:
            number = fresh.pop()
            component[number] = root
            fresh += [earlier for earlier in back[number] if component[earlier] < 0 and earlier not in fresh]
    return component


def _without_limit(exploration: Exploration) -> Iterator[RecipeFinding]:
    net = exploration.net
    for key, action in net.actions.items():
        step = net.steps[action.step]
        has_time = any(action.step in condition.timed_steps for way in step.outgoing for condition in way.conditions)
        if action.pull or action.timeout_ms or not action.rule.holds or action.rule.ends or has_time:
            continue
        yield finding(
            FindingKind.NO_TIME_LIMIT,
            action_element(net, key),
            Text.of(
                "action {action} of step {step}: the step waits for its answer without a time limit",
                action=action.name,
                step=action.step,
            ),
            Text.of("Set timeout_seconds of action {action}.", action=action.name),
        )
    for name, number in exploration.held.items():
        state = exploration.states[number]
        yield finding(
            FindingKind.NO_TIME_LIMIT,
            step_element(net, name),
            Text.of(
                "step {step}: the job keeps lock {locks} while it waits for a person, without a time limit",
                step=name,
                locks=", ".join(state.run.locks.held),
            ),
            Text.of("Lead the failure to a step without the lock before a person is asked."),
            script_to(exploration, state),
        )
