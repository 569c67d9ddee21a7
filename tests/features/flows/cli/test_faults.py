"""Faults are printed with their place."""

import pytest

from edge.features.flows.cli.faults import print_faults
from edge.features.flows.plan import Fault, FaultKind


def test_each_fault_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_faults("f.json", [Fault(FaultKind.EMPTY, "nodes", "no nodes"), Fault(FaultKind.CYCLE, ("a", "b"), "a loop")])
    assert capsys.readouterr().out == "empty: nodes: no nodes\ncycle: a, b: a loop\nf.json: 2 faults\n"
