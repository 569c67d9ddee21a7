"""A folder is read with all faults of its files; other files are ignored or reported."""

import os
from pathlib import Path

import pytest

from edge.features.station_files.folder import has_files, has_flows, read_folder, signature
from edge.foundation.errors import SettingsError
from tests.features.station_files.site import MASTER, NUMBER_OF_OBJECTS, RULE, make_site, write


def faults_of(folder: Path) -> tuple[str, ...]:
    return read_folder(folder, lambda _: ()).faults


def test_folder_is_read_without_hidden_and_other_files(tmp_path: Path) -> None:
    write(make_site(tmp_path), ".git/a.json", "{bad")
    write(tmp_path, "rules/.b.json", "{bad")
    write(tmp_path, "rules/hot.json.bak", "{bad")
    assert len(read_folder(tmp_path, lambda _: ()).checked()) == NUMBER_OF_OBJECTS
    assert has_files(tmp_path)
    assert has_flows(tmp_path)


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_absent_or_empty_folder_has_no_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    assert not has_files(tmp_path / name)
    assert faults_of(tmp_path / name) == ()


def test_all_faults_of_all_files_are_reported_with_their_paths(tmp_path: Path) -> None:
    write(tmp_path, "rules/a.json", "{bad")
    write(tmp_path, "rules/b.json", RULE)
    write(tmp_path, "rules/c.json", RULE)
    (tmp_path / "rules" / "link.json").symlink_to(tmp_path / "nothing")
    (tmp_path / "flows").symlink_to(tmp_path / "rules")
    os.mkfifo(tmp_path / "rules" / "pipe.json")
    found = read_folder(tmp_path, lambda _: ())
    assert [fault.split(": ")[0] for fault in found.faults] == [
        "flows",
        "rules/a.json",
        "rules/c.json",
        "rules/link.json",
        "rules/pipe.json",
    ]
    assert "rules/c.json: rule hot: rules/b.json has it, too" in found.faults
    assert "rules/pipe.json: cannot be read: it is not a regular file" in found.faults
    with pytest.raises(SettingsError) as caught:
        found.checked()
    assert caught.value.problems[1].startswith(f"{tmp_path}: rules/a.json: not JSON")


def test_rules_beyond_the_limit_of_the_store_are_a_fault(tmp_path: Path) -> None:
    write(tmp_path, "rules/many.json", [{**RULE, "id": str(number)} for number in range(1001)])
    assert faults_of(tmp_path) == ("rules: there are 1001 rules; a store takes at most 1000",)


def test_folder_signature_changes_with_the_files(tmp_path: Path) -> None:
    seen = {signature(make_site(tmp_path))}
    assert signature(tmp_path) in seen
    seen.add(signature(write(tmp_path, "scopes/s/workmasters/b.json", MASTER).parents[3]))
    (tmp_path / "rules" / "hot.json").unlink()
    seen.add(signature(tmp_path))
    assert len(seen) == 3
