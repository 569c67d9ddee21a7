"""The role knows every section and key of the settings: it refuses the others before it changes a machine."""

import json
import pkgutil
from pathlib import Path

from edge.app.features import equipment_settings
from edge.config import SECTIONS
from edge.features.telemetry.settings import SOURCE_KINDS

FILE = Path(__file__).parents[2] / "ansible/roles/gateway/vars/known_settings.json"


def expected() -> str:
    known = {name: sorted(section.__struct_fields__) for name, section in SECTIONS.items()}
    for section, kinds in (("southbound", equipment_settings()), ("source", SOURCE_KINDS)):
        models = [pkgutil.resolve_name(each) if isinstance(each, str) else each for each in kinds.values()]
        known[section] = sorted({key for each in (SECTIONS[section], *models) for key in each.__struct_fields__})
    return json.dumps(known, indent=1) + "\n"


def test_file_of_the_role_is_written_from_the_settings() -> None:
    assert FILE.read_text(encoding="utf-8") == expected()


if __name__ == "__main__":
    FILE.write_text(expected(), encoding="utf-8")
