"""Every key has a description, and the reference page has the same text."""

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from edge.app.features import declared_sections
from edge.config import SECTIONS, MqttEquipmentSettings, Settings, value

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


DECLARED = declared_sections()
EQUIPMENT = {kind: DECLARED["southbound"].keys_of(kind) for kind in DECLARED["southbound"].kinds}
TABLES: dict[str, type[msgspec.Struct]] = {name: section.keys for name, section in DECLARED.items()} | {
    f"{name}, kind {kind}": section.keys_of(kind) for name, section in DECLARED.items() for kind in section.kinds
}


def expected_kinds(section: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the kinds that the keys of a piece of equipment are for."""
    return get_args(get_type_hints(section)["kind"])


def rows(section: type[msgspec.Struct]) -> list[str]:
    """Return a section's rows of the table in the reference page."""
    hints = get_type_hints(section, include_extras=True)
    return [
        f"| `{field.name}` | {value.meaning(hints[field.name])} | {value.expected(hints[field.name])} "
        f"| {'required' if field.required else f'`{json.dumps(default_of(field))}`'} |"
        for field in msgspec.structs.fields(section)
    ]


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


@pytest.mark.parametrize("section", TABLES)
def test_reference_page_lists_every_key(section: str) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [row for row in rows(TABLES[section]) if row not in lines]
    assert not missing, f"in {PAGE.name}, section [{section}], these rows belong:\n" + "\n".join(missing)


@pytest.mark.parametrize("section", TABLES)
def test_default_values_are_valid_values(section: str) -> None:
    cls = TABLES[section]
    hints = get_type_hints(cls, include_extras=True)
    for field in msgspec.structs.fields(cls):
        if not field.required:
            default = default_of(field)
            given = list(default) if isinstance(default, tuple) else default
            assert value.from_toml(given, hints[field.name]) == value.Reading(default)


def test_table_of_sections_matches_the_settings() -> None:
    assert [*SECTIONS, "sections"] == [field.name for field in msgspec.structs.fields(Settings)]
    assert SECTIONS["southbound"].keys is next(iter(EQUIPMENT.values())) is MqttEquipmentSettings
    assert [text for kind, cls in EQUIPMENT.items() for text in expected_kinds(cls) if text == kind] == list(EQUIPMENT)


def test_settings_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Settings().redis.url = "redis://elsewhere"  # type: ignore[misc]
