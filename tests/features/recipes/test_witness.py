"""The scripts of findings: the simulator shows what was found in each case of the engine."""

import json
from functools import cache
from pathlib import Path

import pytest

from edge.features.recipes.check import check_net
from edge.features.recipes.finding import FindingKind
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from tests.features.recipes.findings import active, played
from tests.features.recipes.recipes import Json, net_of

CASES = Path("tests/sfc/cases")


@cache
def sound_cases() -> dict[str, Json]:
    """Return the recipes of the cases of the engine that can be loaded."""
    every = {file.stem: json.loads(file.read_text(encoding="utf-8"))["recipe"] for file in sorted(CASES.glob("*.json"))}
    return {name: data for name, data in every.items() if isinstance(compile_recipe(data), Net)}


ON_PURPOSE = {
    "completion-needs-no-outgoing-transition",
    "failure-handled-in-one-path-leaves-the-other-alone",
    "initial-step-in-a-selection-path",
    "live-t-of-another-step-is-not-live",
    "timed-out-is-tested-once",
}
"""The cases of the engine that have a dead end, to show what happens there."""


def test_cases_with_dead_ends_are_those_that_have_them_on_purpose() -> None:
    assert {name for name, data in sound_cases().items() if check_net(net_of(data)).faults} == ON_PURPOSE


@pytest.mark.parametrize("name", sound_cases())
def test_script_of_each_case_shows_what_is_found(name: str) -> None:
    data = sound_cases()[name]
    for item in check_net(net_of(data)).findings:
        if item.script is None:
            continue
        trace = played(data, item)
        if item.kind is FindingKind.FAILURE_SWALLOWED:
            assert trace.final == "completed"
        elif item.kind in {FindingKind.DEAD_END, FindingKind.LOCK_KEPT, FindingKind.NOT_EXHAUSTIVE}:
            assert (trace.final, item.element.name in active(trace)) == ("running", True)
