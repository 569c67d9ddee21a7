"""The pictures of the documentation match the output of the current product."""

from tests.pictures.drawn import FOLDER, pictures


def test_pictures_are_up_to_date() -> None:
    # Those of the station page need a browser: tests/features/page/test_pages_pictures.py draws them.
    files = (path for path in FOLDER.iterdir() if not path.name.startswith("page-"))
    stored = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert stored == pictures(), "draw them again: make pictures"
