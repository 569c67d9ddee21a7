"""Reads rules from decoded JSON and reports all their faults at once, each with the id of its rule."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from edge.expression.syntax import ExpressionSyntaxError
from edge.features.telemetry.model.rule import RULE_KINDS, AlarmLimits, Capability, LimitLevel, Rule
from edge.features.telemetry.rules.alarm import faults_of_message
from edge.features.telemetry.rules.comparison import compile_tag_condition

_LOW: Final = ("low_low", "low")
_LEVELS: Final = ("low_low", "low", "high", "high_high")
_MOST_SHOWN: Final = 60


def parse_rules(data: object) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Return the rules of a list and all faults; the rules are complete only when there is no fault."""
    if not isinstance(data, list):
        return (), ("rules must be a list of objects",)
    faults: list[str] = []
    rules = [_read_rule(number, item, faults) for number, item in enumerate(data)]
    ids = Counter(item["id"] for item in data if isinstance(item, dict) and isinstance(item.get("id"), str))
    faults += [f"rule {rule_id!r}: {times} rules have this id" for rule_id, times in ids.items() if times > 1]
    return tuple(rule for rule in rules if rule is not None), tuple(faults)


def _read_rule(number: int, data: object, faults: list[str]) -> Rule | None:
    place = f"rules[{number}]"
    if not isinstance(data, dict):
        faults.append(f"{place}: must be an object")
        return None
    if isinstance(data.get("id"), str) and data["id"]:
        place = f"rule {data['id']!r}"
    kind = data.get("kind")
    model = RULE_KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        reason = f"unknown kind {_shown(kind)}" if "kind" in data else "missing member 'kind'"
        faults.append(f"{place}: {reason}; write one of {', '.join(RULE_KINDS)}")
        if "id" not in data:
            faults.append(f"{place}: missing member 'id'")
        return None
    found: list[str] = []
    members = {name: value for name, value in data.items() if name != "kind"}
    values = _read_members(model, members, "", found)
    found += _CHECKS.get(str(kind), _no_further_checks)(values, data)
    if values.get("message") is not None:
        found += faults_of_message(values["message"])
    if kind != "limit" and "severity" not in data:
        found.append("missing member 'severity'")
    faults += [f"{place}: {fault}" for fault in found]
    return None if found else msgspec.convert(data, model)


def _read_members(
    model: type[msgspec.Struct], members: Mapping[str, Any], prefix: str, faults: list[str]
) -> dict[str, Any]:
    """Return the members that are sound; report the others, unknown ones and missing ones."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(model)}
    faults += [f"unknown member '{prefix}{name}'" for name in members if name not in fields]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in members:
            if field.required:
                faults.append(f"missing member '{prefix}{name}'")
            continue
        nested = _struct_in(field.type)
        if nested is not None and isinstance(members[name], dict):
            values[name] = _read_members(nested, members[name], f"{prefix}{name}.", faults)
            continue
        try:
            values[name] = msgspec.convert(members[name], field.type)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at ")[0].partition(", got ")[0]
            if "enum value" in reason:
                reason = f"Expected {' or '.join(_choices_in(field.type))}"
            faults.append(f"member '{prefix}{name}': {reason[0].lower()}{reason[1:]}, not {_shown(members[name])}")
    return values


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """Return the nested model of a member, within its description and its alternatives."""
    if annotation in {AlarmLimits, Capability, LimitLevel}:
        return annotation  # type: ignore[no-any-return]
    return next((found for arg in get_args(annotation) if (found := _struct_in(arg))), None)


def _choices_in(annotation: Any) -> Iterator[str]:
    """Return the values of the `Literal` in a type."""
    if get_origin(annotation) is Literal:
        yield from (repr(choice) for choice in get_args(annotation))
    else:
        for value in get_args(annotation):
            yield from _choices_in(value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _check_limits(values: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    given = data.get("limits")
    if not isinstance(given, dict):
        return
    if not any(isinstance(given.get(name), dict) for name in _LEVELS):
        yield f"member 'limits': no limit is there; write one of {', '.join(_LEVELS)}"
    for name in _LEVELS:
        level = given.get(name)
        if isinstance(level, dict) and level.get("severity") is None and data.get("severity") is None:
            yield f"missing member 'limits.{name}.severity', and the rule has no 'severity'"
    levels = values.get("limits", {})
    at = [(name, levels[name]["at"]) for name in _LEVELS if "at" in (levels.get(name) or {})]
    for (lower, low), (upper, high) in pairwise(at):
        if high < low or (high == low and lower in _LOW and upper not in _LOW):
            yield f"member 'limits': {lower} ({low:g}) and {upper} ({high:g}) must be in order"


def _check_share(values: Mapping[str, Any], _data: Mapping[str, Any]) -> Iterator[str]:
    if "bad" in values and "of" in values and values["bad"] > values["of"]:
        yield f"member 'bad': {values['bad']} is more than 'of', {values['of']}"


def _check_chart(values: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    limits = values.get("capability")
    if limits:
        if limits.get("cm") is None and limits.get("cmk") is None:
            yield "missing member 'capability.cm', and 'capability.cmk'; write one of them"
        if "lower" in limits and "upper" in limits and limits["lower"] >= limits["upper"]:
            yield f"member 'capability': lower ({limits['lower']:g}) and upper ({limits['upper']:g}) must be in order"
    given = [data.get(name) is not None for name in ("mean", "sigma")]
    is_only_capability = limits is not None and data.get("nelson") == []
    if not all(given) and data.get("learn") is None and not is_only_capability:
        yield "missing member 'learn'; write it, or 'mean' and 'sigma'"


def _check_expression(values: Mapping[str, Any], _data: Mapping[str, Any]) -> Iterator[str]:
    if "when" in values:
        try:
            compile_tag_condition(values["when"])
        except ExpressionSyntaxError as error:
            yield f"member 'when': {error}"


def _no_further_checks(_values: Mapping[str, Any], _data: Mapping[str, Any]) -> Iterator[str]:
    return iter(())


_CHECKS: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[str]]]] = {
    "limit": _check_limits,
    "share": _check_share,
    "control_chart": _check_chart,
    "expression": _check_expression,
}
"""What a kind requires of its members together."""
