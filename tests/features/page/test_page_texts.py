"""The catalogue contains every text used by the pages, in both languages."""

import re
from collections.abc import Iterable
from enum import Enum

import pytest

from edge.features.flows.cycle import CycleStatus, NodeStatus
from edge.features.flows.state import FlowStatus
from edge.features.page.page_texts import CATALOGUE, language_for, text_of
from edge.features.page.pages import template_folders
from edge.model.job_state import TEXT
from edge.model.plant import OperationState, OperationType
from edge.model.recipe import Intervention
from edge.ports.alarm import AlarmChangeKind, AlarmState
from edge.ports.sample_lines import Quality
from edge.sfc.run import ActionState

TEMPLATES = [path for folder in template_folders() for path in folder.iterdir()]


def test_first_known_language_of_the_reader_is_used() -> None:
    assert [language_for(row) for row in (("fr", "de-AT", "en"), ("fr",), ())] == ["de", "en", "en"]
    assert text_of("jobs", "de") == "Aufträge"


def test_catalogue_has_every_text_that_pages_name() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    named = set(re.findall(r't\("([a-z_]+)"\)|t\(\'([a-z_]+)\'\)', source))
    assert {one or other for one, other in named} <= CATALOGUE.keys()
    assert {f"state.{state}" for state in TEXT.values()} <= CATALOGUE.keys()


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("action", ActionState),
        ("alarm", AlarmState),
        ("change", AlarmChangeKind),
        ("quality", Quality),
        ("operation", OperationType),
        ("operation", OperationState),
        ("intervene", Intervention),
        ("flow", FlowStatus),
        ("flow", CycleStatus),
        ("flow", NodeStatus),
    ],
)
def test_every_state_name_of_the_product_has_a_text(prefix: str, names: Iterable[Enum]) -> None:
    assert {f"{prefix}.{name.value}" for name in names} <= CATALOGUE.keys()


def test_every_text_of_the_catalogue_is_filled() -> None:
    assert [key for key, texts in CATALOGUE.items() if not all(texts)] == []


def test_templates_hold_no_inline_script_or_style() -> None:
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! type=\"module\" src=)|\|safe", source), path
