"""A directory that a feature fills can be written and has room, or the finding says what to do."""

from pathlib import Path

from edge.app.directory_check import FilledDirectory, find_obstacle, room_in
from edge.foundation.text import Text
from edge.model.finding import Level, public_form


def directory(path: Path, max_bytes: int = 1) -> FilledDirectory:
    return FilledDirectory("traces", path, max_bytes, Text.of("traces are lost"), Text.of("a full one loses traces"))


def test_directory_that_can_be_created_has_no_obstacle(tmp_path: Path) -> None:
    assert find_obstacle(directory(tmp_path / "a" / "b"), lambda path: path == tmp_path) is None


def test_file_in_place_of_a_directory_is_an_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = find_obstacle(directory(tmp_path / "file"), lambda _: True)
    assert finding
    assert (finding.level, str(finding.advice)) == (Level.FAILING, "Remove it, or change [traces] directory.")


def test_directory_of_another_user_is_an_obstacle_in_german(tmp_path: Path) -> None:
    finding = find_obstacle(directory(tmp_path), lambda _: False)
    assert finding
    assert public_form(finding, "de").found == f"das Gateway darf {tmp_path} nicht schreiben: Kurven gehen verloren"


def test_disk_without_room_up_to_the_limit_is_a_warning(tmp_path: Path) -> None:
    levels = [room_in(directory(tmp_path, most), tmp_path, Text.of("0 files"), 0).level for most in (1, 1 << 60)]
    assert levels == [Level.OK, Level.WARNING]
