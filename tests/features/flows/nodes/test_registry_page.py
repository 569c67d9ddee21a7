"""The reference page of flows holds every node kind and every kind of fault."""

import re
from pathlib import Path

from edge.features.flows.cycle import SkipReason
from edge.features.flows.nodes.registry import BUILT_IN
from edge.features.flows.plan import FaultKind
from tests.features.flows.nodes import kind_reference

PAGE = (Path(__file__).parents[4] / "docs/reference/flows.md").read_text(encoding="utf-8")


def test_page_has_a_row_for_each_node_kind() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (none|one|any|join) \| (yes|no) \| (.*) \|$", PAGE, re.MULTILINE)
    kinds = [
        (kind.name, kind.inputs.value, "yes" if kind.repeatable else "no", kind.summary) for kind in BUILT_IN.values()
    ]
    assert rows == kinds


def test_page_names_each_fault_and_each_reason() -> None:
    assert [word for word in (*FaultKind, *SkipReason) if f"`{word}`" not in PAGE] == []


def test_page_of_node_kinds_matches_their_schemas() -> None:
    assert kind_reference.PAGE.read_text(encoding="utf-8") == kind_reference.page(), kind_reference.__doc__
