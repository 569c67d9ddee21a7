"""The role knows every section and key of the settings: it refuses the others before it changes a machine."""

import json
from pathlib import Path

from edge.app.features import declared_sections
from edge.config import Section

FILE = Path(__file__).parents[2] / "ansible/roles/gateway/vars/known_settings.json"


def expected() -> str:
    known = {name: sorted(_keys(section)) for name, section in declared_sections().items()}
    return json.dumps(known, indent=1) + "\n"


def _keys(section: Section) -> set[str]:
    return {key for item in (section.keys, *map(section.keys_of, section.kinds)) for key in item.__struct_fields__}


def test_file_of_the_role_is_written_from_the_settings() -> None:
    assert FILE.read_text(encoding="utf-8") == expected()


if __name__ == "__main__":
    FILE.write_text(expected(), encoding="utf-8")
