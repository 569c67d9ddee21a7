"""The catalogues contain every label that the pages use, and a page is in the language of its reader."""

import re
from collections.abc import Iterable
from enum import Enum

import pytest

from edge.features.flows.cycle import CycleStatus, NodeStatus, SkipReason
from edge.features.flows.state import FlowStatus
from edge.features.page.pages import template_folders
from edge.foundation.text import labels, language_for
from edge.model.job_state import TEXT
from edge.model.plant import OperationState, OperationType
from edge.model.recipe import Intervention
from edge.ports.alarm import AlarmChangeKind, AlarmState
from edge.ports.sample_lines import Quality
from edge.sfc.run import ActionState
from tests.architecture.sources import ROOT
from tests.features.page.serving import Browser

CATALOGUE = labels("en")
TEMPLATES = [path for folder in template_folders() for path in folder.iterdir()]


def test_first_known_language_of_the_reader_is_used() -> None:
    languages = [language_for(row) for row in (("eo", "de-AT", "en"), ("fr-CA",), ("eo",), ())]
    assert languages == ["de", "fr", "en", "en"]
    assert labels("de")["jobs"] == "Aufträge"


async def test_page_is_in_french_for_a_browser_that_asks_for_it(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    page = (await eve.get("/alarms", accept_language="fr-FR,fr;q=0.9,en;q=0.5")).text
    assert '<html lang="fr">' in page
    assert [word for word in ("Alarmes", "Passerelle", "Se déconnecter") if word not in page] == []


def test_catalogue_has_every_label_that_pages_name() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    named = set(re.findall(r't\("([a-z_]+)"\)|t\(\'([a-z_]+)\'\)', source))
    assert {one or other for one, other in named} <= CATALOGUE.keys()
    assert {f"state.{state}" for state in TEXT.values()} <= CATALOGUE.keys()


def test_every_label_is_named_by_a_page_or_the_product() -> None:
    """Labels of pages that had changed were left over in each language."""
    sources = [path for path in (ROOT / "edge").rglob("*") if path.suffix in {".html", ".js", ".py"}]
    source = "".join(path.read_text(encoding="utf-8") for path in sources)
    whole = set(re.findall(r"[\"'`]([\w.]+)[\"'`]", source))
    begun = tuple(set(re.findall(r"[\"'`]([a-z_]+(?:\.[a-z_]+)*[._])(?:[\"'`] ?~|\$?\{)", source)))
    assert [name for name in CATALOGUE if name not in whole and not name.startswith(begun)] == []


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
        ("flow", SkipReason),
    ],
)
def test_every_state_name_of_the_product_has_a_label(prefix: str, names: Iterable[Enum]) -> None:
    assert {f"{prefix}.{name.value}" for name in names} <= CATALOGUE.keys()


def test_templates_hold_no_inline_script_or_style() -> None:
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! type=\"module\" src=)|\|safe", source), path
