"""The pictures of the documentation are those that the product draws today."""

from tests.pictures.drawn import FOLDER, pictures


def test_pictures_are_up_to_date() -> None:
    stored = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert stored == pictures(), "draw them again: make pictures"
