"""`edge store status` fits a terminal of 80 columns and shows problems with advice."""

import contextlib

import pytest
from rich.console import Console

from edge.cli.store import status_output
from edge.cli.terminal import table
from edge.store.sentinels import Primary, ReplicaView, SentinelReport, SentinelView
from edge.store.store_state import FenceState, NodeReport, StoreState, state_of

PRIMARY, REPLICA = "192.168.100.101:16379", "192.168.100.102:16379"
VIEW = SentinelView(
    sentinel_id="a",
    primary=Primary("192.168.100.101", 16379, 3),
    flags=frozenset({"master"}),
    last_ok_ping_s=0.1,
    down_after_s=2.0,
    failover_timeout_s=60.0,
    quorum=2,
    sentinels=3,
    known={"b": ("192.168.100.102", 26379)},
    replicas=(ReplicaView(("192.168.100.102", 16379), frozenset({"slave"}), 100, 0),),
)


def line() -> StoreState:
    primary = NodeReport(address=PRIMARY, role="master", server="Valkey 9.1.2", has_aof=True, offset=9)
    replica = NodeReport(address=REPLICA, error="no reply within 1 s")
    reports = [
        SentinelReport("192.168.100.101:26379", VIEW),
        SentinelReport("192.168.100.102:26379", None, "the sentinel 192.168.100.102:26379 does not answer"),
    ]
    nodes = {node_report.address: node_report for node_report in (primary, replica)}
    return state_of(reports, nodes, durability="required", fence=FenceState(1.25))


def printed(monkeypatch: pytest.MonkeyPatch, state: StoreState, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    monkeypatch.setattr(table, "open_console", lambda: Console(width=80, highlight=False, markup=False))
    output = status_output(state)
    with contextlib.suppress(SystemExit):
        output.print(as_json=False)
    return int(output.is_failed), capsys.readouterr().out


def test_tables_of_a_line_fit_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(monkeypatch, line(), capsys)
    assert status == 1
    assert max(map(len, text.splitlines())) <= 80
    assert f"{PRIMARY}  primary" in text
    assert "no answer" in text
    assert "confirmed   yes, for the next 1.2 s" in text


def test_each_problem_is_printed_with_its_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = printed(monkeypatch, line(), capsys)
    words = " ".join(text.split())
    assert f"problem: the replica {REPLICA} is away: no reply within 1 s" in words
    assert "problem: the sentinel 192.168.100.102:26379 does not answer → Start it:" in words


def test_line_without_problems_exits_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = NodeReport(address=PRIMARY, role="master", server="Redis 7.0.15", has_aof=True)
    status, text = printed(monkeypatch, state_of((), {PRIMARY: server}, durability="required"), capsys)
    assert status == 0
    assert "server      192.168.100.101:16379, Redis 7.0.15" in text
    assert "problem" not in text
