"""Findings of recipes, and what the simulator does with their scripts."""

import json
from collections import Counter

from edge.features.recipes.check import check_net
from edge.features.recipes.finding import FindingLevel, RecipeFinding
from edge.features.simulator.script import parse_script
from edge.features.simulator.trace import Trace
from edge.features.simulator.virtual_simulation import simulate
from tests.features.recipes.recipes import Json, net_of


def findings(data: Json) -> list[RecipeFinding]:
    result = check_net(net_of(data))
    assert result.is_complete
    return list(result.findings)


def found(data: Json, *, information: bool = True) -> set[tuple[str, str]]:
    """Return kind and name of each finding."""
    return {
        (item.kind.value, item.element.name)
        for item in findings(data)
        if information or item.level is not FindingLevel.INFORMATION
    }


def played(data: Json, item: RecipeFinding) -> Trace:
    """Return what the simulator does with the script of a finding."""
    assert item.script is not None, item
    return simulate(data, parse_script(json.loads(json.dumps(item.script))))


def active(trace: Trace) -> set[str]:
    """Return the steps that are active at the end."""
    counts = Counter({step["step"]: 0 for step in trace.steps})
    for step in trace.steps:
        counts[step["step"]] += 1 if step["active"] else -1
    return {name for name, count in counts.items() if count}
