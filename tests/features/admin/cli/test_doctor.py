"""`edge doctor` reports the health of a gateway as text and JSON within its time limit."""

import json

from edge.model.finding import Level
from tests.cli.calling import Edge


async def test_a_real_gateway_is_examined(edge: Edge) -> None:
    answer = await edge("doctor", "--json")
    reported = json.loads(answer.output)
    assert {"settings", "store", "clock", "versions"} <= {finding["subject"] for finding in reported["findings"]}
    assert reported["level"] in set(Level)
    assert answer.exit_code == list(Level).index(Level(reported["level"]))
