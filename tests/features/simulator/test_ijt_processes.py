"""Counters of a simulated controller."""

from edge.features.simulator.ijt_processes import JoiningProcesses


def test_counters_are_reported_within_a_batch_only() -> None:
    processes = JoiningProcesses((), {})
    assert (processes.counters(), processes.is_complete) == ([], False)
    processes.size, processes.counter = 2, 2
    assert [counter["CounterValue"] for counter in processes.counters()] == [2, 2]
    assert processes.is_complete
    processes.clear()
    assert (processes.size, processes.counter) == (1, 0)
