"""Every case in `cases/`: a recipe, a script and the expected trace, with the reason."""

import json
from pathlib import Path

import pytest

from edge.features.simulator.script import parse_script
from edge.features.simulator.virtual_simulation import simulate
from tests.sfc.expectations import unmet

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_simulated_case_meets_its_expectations(file: Path) -> None:
    case = json.loads(file.read_text())
    trace = simulate(case["recipe"], parse_script(case["script"])).as_json()
    problems = list(unmet(trace, case["expect"]))
    assert not problems, f"{case['why']}\n" + "\n".join(problems) + "\n" + json.dumps(trace, indent=1)


def test_every_case_has_a_reason() -> None:
    assert CASES
    for file in CASES:
        assert len(json.loads(file.read_text())["why"]) > 10, file.name
