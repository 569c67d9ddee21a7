"""The settings and rules on the pages about sources of samples are sound."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from edge.config import load_settings
from edge.rules.rule_form import parse_rules
from edge.southbound.kinds import EQUIPMENT_SETTINGS

PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to").glob("samples-*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_settings_and_rules_of_a_page_are_sound(page: Path, tmp_path: Path) -> None:
    for name in ("rules.json", "opcua-client.pem", "opcua-client.key"):
        (tmp_path / name).write_text("[]")
    (tmp_path / "opcua-devices").mkdir()
    assert blocks(page, "toml")
    for number, text in enumerate(blocks(page, "toml")):
        file = tmp_path / f"edge{number}.toml"
        file.write_text('[mqtt]\nurl = "mqtt://127.0.0.1"\n' + text.replace("/etc/microdcs-edge", str(tmp_path)))
        load_settings(file, {}, EQUIPMENT_SETTINGS)
    assert blocks(page, "json")
    for text in blocks(page, "json"):
        rules: Any = json.loads(text)
        assert parse_rules(rules)[1] == ()
