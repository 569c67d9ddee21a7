"""Trends keep the tags on display, and control charts are read from the states of rules."""

from functools import partial
from pathlib import Path

from msgspec.structs import replace

from edge.features.telemetry import rule_memory
from edge.features.telemetry.model.rule import ControlChartRule, Rule
from edge.features.telemetry.rule_memory import encode_state
from edge.features.telemetry.rules.control_chart import ControlChartState
from edge.features.telemetry.rules.subject_state import SubjectState
from edge.features.telemetry.trends import TrendMemory, Trends, number_of
from edge.model.user import Role
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.store.client import Store

RULE = ControlChartRule(id="torque", tag="t", severity=500, message={"en": "m"}, learn=5)


async def test_trend_starts_with_the_last_sample_and_grows(store: Store, tmp_path: Path) -> None:
    memory = TrendMemory(most_tags=1, most_points=2)
    trends = Trends(store, memory, lambda: (), TagDefinitions(), None, tmp_path)
    memory.take([Sample(1, "a", 5)])
    assert await trends.points("a", Sample(1, "a", 5)) == ((1, 5.0),)
    memory.take([Sample(3, "a", 7), Sample(2, "a", 6), Sample(2, "b", 6), Sample(4, "a", "text")])
    assert await trends.points("a", None) == ((2, 6.0), (3, 7.0))
    assert await trends.points("b", None) == ()
    assert memory.points("a") is None


async def test_trend_grows_when_another_gateway_processes_the_samples(store: Store, tmp_path: Path) -> None:
    trends = Trends(store, TrendMemory(), lambda: (), TagDefinitions(), None, tmp_path)
    assert await trends.points("a", Sample(1, "a", 5)) == ((1, 5.0),)
    assert await trends.points("a", Sample(2, "a", 6)) == ((1, 5.0), (2, 6.0))
    assert await trends.points("a", Sample(2, "a", 6)) == ((1, 5.0), (2, 6.0))


async def test_control_chart_is_read_from_the_state_of_its_rule(store: Store, tmp_path: Path) -> None:
    learning = encode_state(SubjectState(ControlChartState(learned=(1.0, 2.0))))
    charted = encode_state(SubjectState(ControlChartState(mean=2.0, sigma=1.0, points=(9.0,), is_out=True)))
    states = {("torque", "a"): charted, ("torque", "b"): learning, ("torque", "c"): "{", ("other", "a"): charted}
    await store.commit(rule_memory.save(store.keys, 0, "", states))
    trends = Trends(store, TrendMemory(), lambda: (RULE,), TagDefinitions(), None, tmp_path)
    first, second = await trends.control_charts(Role.OBSERVER)
    assert (first.subject, first.lower, first.upper, first.points, first.is_out) == ("a", -1.0, 5.0, (9.0,), True)
    assert (second.subject, second.is_learning, second.points) == ("b", True, (1.0, 2.0))


async def test_control_chart_needs_the_role_of_every_tag_in_it(store: Store, tmp_path: Path) -> None:
    charted = encode_state(SubjectState(ControlChartState(mean=2.0, sigma=1.0, points=(9.0,))))
    subjects = ("dose", "dose[J1]", "dose[press-2]", "dose2", "pump", "pump[press-2]", "tank", "gas[press-2]")
    await store.commit(rule_memory.save(store.keys, 0, "", {("torque", subject): charted for subject in subjects}))
    definitions = TagDefinitions(TagDefinition(tag, role="engineer") for tag in ("dose", "pump.flow", "gas[press-2]"))
    for kind, pattern, shown in (
        ("tag", "*", {"dose2", "pump", "pump[press-2]", "tank"}),
        ("tool", "*", {"dose2", "tank"}),
        ("job", "dose", {"dose2", "pump", "pump[press-2]", "tank"}),
        ("tool", "pump.speed", {*subjects} - {"dose", "gas[press-2]"}),
    ):
        rule = replace(RULE, tag=pattern, subject=kind)
        trends = Trends(store, TrendMemory(), partial(tuple[Rule], [rule]), definitions, None, tmp_path)
        assert {chart.subject for chart in await trends.control_charts(Role.OPERATOR)} == shown
        assert {chart.subject for chart in await trends.control_charts(Role.ENGINEER)} == {*subjects}


def test_only_finite_numbers_are_shown() -> None:
    assert [number_of(number) for number in (True, 2, 10**400, float("nan"), "x")] == [1.0, 2.0, None, None, None]
