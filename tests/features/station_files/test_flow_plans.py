"""Flows are validated with the node kinds of the site; a folder without flows loads no node kinds."""

from pathlib import Path

from edge.features.station_files.flow_plans import load_plans, plan_faults
from tests.features.station_files.site import FLOW, make_site, write


async def test_folder_without_flows_needs_no_plans(tmp_path: Path) -> None:
    assert await load_plans(write(tmp_path, "rules/a.json", []).parents[1], "") is None
    assert plan_faults(None)(FLOW) == ("the file came while the folder was read; read it again",)


async def test_faults_of_a_flow_are_reported_with_their_location(tmp_path: Path) -> None:
    faults = plan_faults(await load_plans(make_site(tmp_path), ""))
    assert list(faults(FLOW)) == []
    bad = {**FLOW, "nodes": [{"id": "a", "kind": "nope"}]}
    assert list(faults(bad)) == ["unknown_kind: a: there is no node kind 'nope'; 'edge flows kinds' lists them"]
