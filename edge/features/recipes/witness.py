"""Writes the way to a state of an exploration as a script of `edge simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from edge.expression.value import UNKNOWN
from edge.features.recipes.abstract_data import Path
from edge.features.recipes.exploration import Exploration, ExploredState, Happening, Move, path_to
from edge.features.recipes.footprint import NOW
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, Run
from edge.sfc.signal import Phase

_LONGEST_GAP_MS: Final = 100
_ANSWERS: Final = {Happening.DONE: "ok", Happening.FAILED: "failed", Happening.UNKNOWN: "unknown"}


def script_to(exploration: Exploration, last: ExploredState) -> dict[str, Any] | None:
    """Return the script that leads a job to a state; None where no script can, as for a lock of another job."""
    path = path_to(exploration.states, last)
    before = [exploration.states[state.before] for state in path]
    for state in path:
        by_lock = state.move == _LOCK_TIME
        outside = any(name[:1] == ("job",) and value is not UNKNOWN for name, value in state.values.items())
        if by_lock or outside:
            return None
    return _Writer(exploration.net, before, path).script()


_LOCK_TIME: Final = Move(Happening.TIME)


class _Command:
    """A command on the way: when it was sent, as which of its type, and how it is answered."""

    def __init__(self, at: int, type_id: str, action: str, nth: int) -> None:
        self.at = at
        self.type_id = type_id
        self.action = action
        self.nth = nth
        self.result = "none"
        self.after = 0
        self.data: dict[str, Any] = {}

    def rule(self) -> dict[str, Any]:
        rule: dict[str, Any] = {"type_id": self.type_id, "action": self.action, "nth": self.nth, "result": self.result}
        if self.result != "none":
            rule["after"] = self.after / 1000
        return rule | ({"data": self.data} if self.data else {})


class _Writer:
    """Writes each move of a path with its instant, in milliseconds after the start."""

    def __init__(self, net: Net, before: Sequence[ExploredState], path: Sequence[ExploredState]) -> None:
        self._net = net
        self._steps = list(zip(before, path, strict=True))
        self._now = 0
        self._gap = _gap_ms(net)
        self._activated: dict[str, int] = {}
        self._armed: dict[AssociationKey, int] = {}
        self._commands: dict[str, _Command] = {}
        self._sent: dict[str, int] = {}
        self._timeline: list[dict[str, Any]] = []
        self._answers: dict[str, dict[str, Any]] = {}
        """The data of the last answer or event of each action."""
        self._named = set(self._names_without_answer())

    def _names_without_answer(self) -> Iterator[str]:
        """Yield the plain names whose value no answer brings: the script sets them."""
        for _, state in self._steps:
            if state.move.kind not in {Happening.DONE, Happening.EVENT}:
                yield from (str(path[0]) for path, value in _plain(state) if value is not UNKNOWN and len(path) == 1)

    def script(self) -> dict[str, Any]:
        """Return the script."""
        for before, state in self._steps:
            self._write(before, state)
        commands = self._commands.values()
        rules = [command.rule() for command in commands if command.result != "none"]
        script: dict[str, Any] = {"default": {"result": "none"}, "equipment": rules, "timeline": self._timeline}
        return {name: value for name, value in script.items() if value}

    def _write(self, before: ExploredState, state: ExploredState) -> None:
        move, data = state.move, dict[str, Any]()
        self._now = self._instant(before, state)
        answered = before.run.associations.get(move.key) if move.key else None
        if answered is not None and move.kind in _ANSWERS:
            command = self._commands[answered.command_id]
            command.result, command.after, data = _ANSWERS[move.kind], self._now - command.at, command.data
        elif answered is not None and move.kind is Happening.EVENT:
            self._timeline.append(
                {"at": self._now / 1000, "event": {"type_id": answered.type_id, "data": data}},
            )
        elif move.intervene is not None:
            fields = {"kind": move.intervene.kind.value, "action": move.intervene.action, "step": move.intervene.step}
            fields["target"] = move.intervene.target
            named = {name: value for name, value in fields.items() if value}
            self._timeline.append({"at": self._now / 1000, "intervene": named})
        if answered is not None and move.kind in {Happening.DONE, Happening.EVENT}:
            self._answers[answered.action] = data
        self._write_values(state, data)
        self._note(before, state)

    def _instant(self, before: ExploredState, state: ExploredState) -> int:
        move = state.move
        match move.kind:
            case Happening.START | Happening.GRANTED:
                return self._now
            case Happening.TIME if move.key is None:
                step = state.run.steps[move.step]
                elapsed = NOW - step.activated_at if step.active else step.elapsed_ms
                renewed = step.count != before.run.steps[move.step].count
                passed = elapsed if not renewed else self._passed(before, move.step)
                return max(self._now, self._activated[move.step] + passed)
            case Happening.TIME:
                key = move.key or AssociationKey("", "")
                return max(self._now, self._armed.get(key.latest, 0) + self._limit(before.run, key))
            case _:
                return self._now + self._gap

    def _passed(self, before: ExploredState, step: str) -> int:
        """Return the T at which the next limit of an action of a step is met."""
        run = before.run
        instants = [
            instant
            for action in self._net.steps[step].actions
            if action.key in run.open
            for instant in (run.associations[action.key].due, run.associations[action.key].deadline)
            if instant is not None
        ]
        return min(instants, default=NOW) - run.steps[step].activated_at

    def _limit(self, run: Run, key: AssociationKey) -> int:
        """Return how long after its beginning an action meets its next limit."""
        association = run.associations[key]
        if association.armed_at is None:
            return self._net.actions[key.latest].duration_ms
        instants = (association.due, association.deadline)
        return min(instant for instant in instants if instant is not None) - association.armed_at

    def _write_values(self, state: ExploredState, data: dict[str, Any]) -> None:
        """Put the values that a move has read into the data of answers, or set them."""
        named: dict[str, Any] = {}
        mirrored: dict[str, Any] = {}
        for path, value in state.values.items():
            match path:
                case ("actions", str() as action, "result", *members):
                    if value is not UNKNOWN and members:
                        _put(self._answers.setdefault(action, {}), members, value)
                case ("mirrors", str() as name, "stale"):
                    mirrored.setdefault(name, [])
                case ("mirrors", str() as name, str() as member):
                    mirrored.setdefault(name, []).extend([member] if value is True else [])
                case (str() as name,) if name in self._named:
                    if value is not UNKNOWN:
                        named[name] = value
                case _:
                    if value is not UNKNOWN:
                        _put(data, path, value)
        if named:
            self._timeline.append({"at": self._now / 1000, "set": named})
        if mirrored:
            self._timeline.append({"at": self._now / 1000, "mirror": mirrored})

    def _note(self, before: ExploredState, state: ExploredState) -> None:
        """Record what a move has begun."""
        for name in state.run.active:
            step, earlier = state.run.steps[name], before.run.steps.get(name)
            if earlier is None or not earlier.active or step.count != earlier.count:
                self._activated[name] = self._now
        changed = (key for kind, key in state.run.touched if kind == "action" and key in state.run.associations)
        for key in changed:
            association = state.run.associations[key]
            earlier_one = before.run.associations.get(key)
            if earlier_one is None or earlier_one.attempt != association.attempt or _begins(earlier_one, association):
                self._armed[key.latest] = self._now
        for request in state.requests:
            if request.phase is not Phase.STOP:
                nth = self._sent[request.type_id] = self._sent.get(request.type_id, 0) + 1
                self._commands[request.command_id] = _Command(self._now, request.type_id, request.action, nth)


def _begins(before: Association, after: Association) -> bool:
    return before.state is ActionState.PENDING and after.state is not ActionState.PENDING


def _plain(state: ExploredState) -> list[tuple[Path, Any]]:
    return [(path, value) for path, value in state.values.items() if path[0] not in {"actions", "job", "mirrors"}]


def _put(data: dict[str, Any], path: Sequence[str | int], value: Any) -> None:
    """Put a value into nested objects; the items of a list before it are null."""
    *outer, last = path
    inner: Any = data
    for part, following in zip(outer, path[1:], strict=True):
        empty: Any = [] if isinstance(following, int) else {}
        inner = _member(inner, part, empty)
    _member(inner, last, None)
    inner[last] = value


def _member(inner: Any, part: str | int, empty: Any) -> Any:
    if isinstance(inner, list) and isinstance(part, int):
        inner += [None] * (part + 1 - len(inner))
        if inner[part] is None:
            inner[part] = empty
        return inner[part]
    return inner.setdefault(part, empty) if inner.get(part) is None else inner[part]


def _gap_ms(net: Net) -> int:
    """Return the time between two moves: short against every limit of the recipe."""
    limits = [action.timeout_ms for action in net.actions.values() if action.timeout_ms]
    limits += [action.duration_ms for action in net.actions.values() if action.duration_ms]
    timed = 1 if net.timed else _LONGEST_GAP_MS
    return max(1, min([timed, *(limit // (10 * (len(net.steps) + 1)) for limit in limits)]))
