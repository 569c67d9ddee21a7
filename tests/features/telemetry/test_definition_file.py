"""The file with tag definitions is read completely or refused with all its faults."""

from pathlib import Path

import pytest

from edge.features.telemetry.definition_file import read_definitions
from edge.foundation.errors import SettingsError


def test_file_is_read_and_an_empty_name_means_no_definitions(tmp_path: Path) -> None:
    file = tmp_path / "tags.json"
    file.write_text('[{"tag": "t", "unit": "CEL"}]')
    found = read_definitions(str(file)).find("t")
    assert found is not None
    assert found.unit == "CEL"
    assert read_definitions("").find("t") is None


@pytest.mark.parametrize(
    ("text", "fault"), [("[", "not JSON"), ("{}", "a list"), ('[{"tag": "t", "unit": "m"}]', "'t'")]
)
def test_faulty_file_is_named_in_the_refusal(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "tags.json"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_definitions(str(file))
    assert "tags.json" in str(refused.value.problems)
    assert fault in str(refused.value.problems)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_definitions(str(tmp_path / "none.json"))
