"""Node kinds of a site are found in a folder, and run in workers; faulty ones are all reported."""

from pathlib import Path

import msgspec
import pytest

from edge.features.flows.nodes.kind import Attempt, Compute, NodeError
from edge.features.flows.nodes.registry import BUILT_IN
from edge.features.flows.plugins import load_kinds, read_kinds
from edge.foundation.errors import SettingsError
from tests.features.flows.site_kinds import CHECK, write_check


def test_kind_from_a_folder_runs_in_workers(tmp_path: Path) -> None:
    kinds = load_kinds(write_check(tmp_path))
    assert kinds["site.check"].in_worker
    assert set(kinds) - set(BUILT_IN) == {"site.check"}


def test_only_built_in_kinds_exist_without_a_folder() -> None:
    assert load_kinds("") == BUILT_IN


def test_all_faulty_kinds_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1 +")
    (tmp_path / "b.py").write_text("KIND = 5")
    (tmp_path / "c.py").write_text("nothing = 1")
    (tmp_path / "d.py").write_text(CHECK.replace("site.check", "constant"))
    with pytest.raises(SettingsError) as fault:
        load_kinds(str(tmp_path))
    assert len(fault.value.problems) == 4
    assert "SyntaxError" in fault.value.problems[0]
    assert fault.value.problems[1].endswith("KIND is a NodeKind with the work Compute")
    assert fault.value.problems[3].endswith("there is a node kind 'constant' already")


def test_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "write-a-node-kind.md").read_text(encoding="utf-8")
    (tmp_path / "part_check.py").write_text(page.split("```python\n")[1].split("```")[0])
    (tmp_path / "weights.json").write_text("[0.5, 0.5]")
    kind = load_kinds(str(tmp_path))["site.part_check"]
    assert isinstance(kind.work, Compute)
    config = msgspec.convert({"weights": str(tmp_path / "weights.json")}, kind.config)
    assert kind.work.run(config, Attempt("f", "n", 1, 0, {"a": [1.0, 0.5]})).value == {"score": 0.75, "good": True}
    with pytest.raises(NodeError, match="expected 2 pixels, got 0"):
        kind.work.run(config, Attempt("f", "n", 1, 0, {"a": []}))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ('NodeKind(5, "s", CheckConfig, Inputs.ONE, Compute(run))', "the name of a kind has"),
        ('NodeKind("a b\\n", "s", CheckConfig, Inputs.ONE, Compute(run))', "the name of a kind has"),
        ('NodeKind("x" * 101, "s", CheckConfig, Inputs.ONE, Compute(run))', "the name of a kind has"),
        ('NodeKind("site.x", None, CheckConfig, Inputs.ONE, Compute(run))', "summary is a text"),
        ('NodeKind("site.x", "s", CheckConfig, "many", Compute(run))', "summary is a text"),
        ('NodeKind("site.x", "s", dict, Inputs.ONE, Compute(run))', "config is a subclass"),
        ('NodeKind("site.x", "s", CheckConfig, Inputs.ONE, Compute(None))', "KIND is a NodeKind with"),
        ('NodeKind("site.x", "s", Odd, Inputs.ONE, Compute(run))', "its config has no JSON Schema"),
    ],
)
def test_kind_with_members_of_wrong_types_is_left_out(tmp_path: Path, kind: str, reason: str) -> None:
    odd = "\n\nclass Odd(NodeConfig, frozen=True):\n    member: NodeKind\n\n"
    (tmp_path / "odd.py").write_text(f"{CHECK.partition('KIND =')[0]}{odd}KIND = {kind}\n")
    site_kinds = read_kinds(str(tmp_path))
    assert site_kinds.kinds == BUILT_IN
    assert site_kinds.faults[str(tmp_path / "odd.py")].startswith(reason)
