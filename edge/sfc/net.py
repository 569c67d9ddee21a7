"""A recipe ready to run: its steps, transitions and action associations, indexed by what each signal may concern."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from edge.expression.compiler import Expression
from edge.foundation.text import Text
from edge.model.recipe import Intervention, Qualifier, Recipe
from edge.sfc.condition import Condition
from edge.sfc.identifiers import AssociationKey
from edge.sfc.run import Association, Run
from edge.sfc.signal import CommandRequest, Phase


class Moment(Enum):
    """A moment in the life of one activation of a step."""

    NEVER = auto()
    ACTIVATION = auto()
    DURATION = auto()
    """When the action's duration T has passed since the activation."""
    DEACTIVATION = auto()


class Leave(Enum):
    """The effect on an open action when its step is left."""

    STOP = auto()
    """A command without an answer is stopped; a delay or a wait is dropped."""
    CANCEL_DELAY = auto()
    """A delay is dropped; a command stays."""
    KEEP = auto()
    """The action is kept."""


class QualifierRule(Struct, frozen=True):
    """One line of the table.

    `sends` is when the command goes out (or the wait is armed), `stores` when the action is set until R, `ends` whether
    it is over when T has passed, `holds` whether the step waits for it.
    """

    sends: Moment
    stores: Moment = Moment.NEVER
    leave: Leave = Leave.KEEP
    ends: bool = False
    holds: bool = True
    resets: bool = False

    @property
    def timed(self) -> bool:
        """Return whether the qualifier needs a duration."""
        return self.ends or self.sends is Moment.DURATION

    @property
    def stored(self) -> bool:
        """Return whether the qualifier sets the action until R."""
        return self.stores is not Moment.NEVER


QUALIFIER_RULES: Final[dict[Qualifier, QualifierRule]] = {
    Qualifier.N: QualifierRule(sends=Moment.ACTIVATION, leave=Leave.STOP),
    Qualifier.P: QualifierRule(sends=Moment.ACTIVATION),
    Qualifier.P1: QualifierRule(sends=Moment.ACTIVATION),
    Qualifier.P0: QualifierRule(sends=Moment.DEACTIVATION, holds=False),
    Qualifier.S: QualifierRule(sends=Moment.ACTIVATION, stores=Moment.ACTIVATION),
    Qualifier.R: QualifierRule(sends=Moment.ACTIVATION, resets=True),
    Qualifier.L: QualifierRule(sends=Moment.ACTIVATION, leave=Leave.STOP, ends=True),
    Qualifier.D: QualifierRule(sends=Moment.DURATION, leave=Leave.STOP),
    Qualifier.SD: QualifierRule(sends=Moment.DURATION, stores=Moment.ACTIVATION, holds=False),
    Qualifier.DS: QualifierRule(sends=Moment.DURATION, stores=Moment.DURATION, leave=Leave.CANCEL_DELAY),
    Qualifier.SL: QualifierRule(sends=Moment.ACTIVATION, stores=Moment.ACTIVATION, ends=True),
}


HELPS_A_FAILURE: Final = frozenset({Intervention.RETRY, Intervention.SKIP})
"""The interventions for which a failure waits, where the recipe allows one of them."""


class NetAction(Struct, frozen=True):
    """An action association, ready to run; `key` identifies it. Times are milliseconds."""

    key: AssociationKey
    index: int
    name: str
    step: str
    qualifier: Qualifier
    rule: QualifierRule
    type_id: str
    pull: bool
    timeout_ms: int
    duration_ms: int
    parameters: dict[str, Any]
    interventions: frozenset[Intervention]


class NetTransition(Struct, frozen=True):
    """A plain transition; `index` is its rank, `needs_done` the sources that must be done before it is tested."""

    index: int
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    conditions: tuple[Condition, ...]
    needs_done: tuple[str, ...]
    place: str
    locks: frozenset[str] = frozenset()
    """The locks of its targets."""
    written: int = -1
    """Its place among the transitions of the recipe; outside of them for one that is implied."""

    @property
    def always(self) -> bool:
        """Return whether its condition is always true."""
        return not self.conditions

    @property
    def never(self) -> bool:
        """Return whether its condition is never true."""
        return any(condition.constant is False for condition in self.conditions)

    @property
    def mirrors(self) -> frozenset[str]:
        """Return the mirrored sets that its conditions ask for."""
        return frozenset().union(*(condition.mirrors for condition in self.conditions))

    @property
    def text(self) -> str:
        """Return the condition as the author wrote it."""
        return " and ".join(
            condition.text if len(self.conditions) == 1 else f"({condition.text})" for condition in self.conditions
        )


class NetStep(Struct, frozen=True):
    """A step with its associations in recipe order (`entering`: resets last) and its outgoing transitions by rank.

    `index` is its place in the recipe.
    """

    index: int
    name: str
    actions: tuple[NetAction, ...]
    entering: tuple[NetAction, ...]
    holding: tuple[AssociationKey, ...]
    outgoing: tuple[NetTransition, ...]
    interventions: frozenset[Intervention]
    locks: frozenset[str] = frozenset()
    """Its own locks and those of the branches around it."""
    lock_timeout_ms: int = 0


class Net(Struct, frozen=True):
    """A compiled recipe. `source` is its JSON text, from which the same net can be compiled again."""

    recipe: Recipe
    source: str
    warning_texts: tuple[Text, ...]
    initial: str
    entry: NetTransition
    """The beginning of the run: no source, and the initial step as its target."""
    steps: Mapping[str, NetStep]
    transitions: tuple[NetTransition, ...]
    actions: Mapping[AssociationKey, NetAction]
    """Associations by key."""
    starting: Mapping[str, tuple[NetAction, ...]]
    """Associations by action name, without R."""
    resetting: Mapping[str, tuple[NetAction, ...]]
    """The R associations by action name."""
    pulling: Mapping[str, tuple[NetAction, ...]]
    """Associations that wait for an event, by its type."""
    sensitive: frozenset[str]
    """Steps with an outgoing transition whose condition may change its value."""
    timed: frozenset[str]
    """Steps with an outgoing transition that compares a step's T."""
    unsteady: frozenset[str]
    """Steps with an outgoing transition whose condition depends on more than the run, as on a mirrored set."""
    terminal: frozenset[str]
    """Steps without outgoing transition."""
    locking: frozenset[str]
    """Steps with an outgoing transition that needs locks beyond those of its sources."""
    held: frozenset[AssociationKey]
    """Associations whose failure waits for a person instead of failing the run."""
    command_types: frozenset[str]
    mirrors: frozenset[str] = frozenset()
    """The mirrored sets that its conditions ask for."""
    verdict: Expression | None = None
    """What the recipe says about its result; None: the last attempts of its actions say it."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is allowed but probably not intended, in English."""
        return tuple(map(str, self.warning_texts))


def request_of(net: Net, run: Run, phase: Phase, association: Association, step: str) -> CommandRequest:
    """Return the request that a decision of this run made for an association; it is derived from the net, not stored.

    `step` is the step of the activation that shares the command, where several do.
    """
    among = (net.resetting if association.reset else net.starting).get(association.action, ())
    here = [action for action in among if action.step == step]
    latest = [
        action
        for action in here
        if (other := run.associations.get(action.key)) and other.attempt == association.attempt
    ]
    action = (latest or here)[0]
    return request(run, action, phase, association.command_id, association.attempt)


def request(run: Run, action: NetAction, phase: Phase, command: str, attempt: int) -> CommandRequest:
    """Return a request; the parameters of the run replace those of the action."""
    parameters = action.parameters | run.parameters if run.parameters else action.parameters
    return CommandRequest(phase, command, action.name, action.step, attempt, action.type_id, parameters)
