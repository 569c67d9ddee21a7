"""The schemas that stand in the repository are those that the command writes."""

from pathlib import Path

from click.testing import CliRunner

from edge.cli import main
from edge.model.schemas import schemas

SCHEMAS = Path(__file__).parents[2] / "schemas"


def test_every_schema_is_written_and_what_there_is_no_more_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    directory.mkdir()
    (directory / "former.schema.json").write_text("{}")
    (directory / "notes.txt").write_text("mine")
    answer = CliRunner().invoke(main, ["schemas", str(directory)])
    assert answer.exit_code == 0, answer.output
    written = {each.name: each.read_text(encoding="utf-8") for each in directory.glob("*.json")}
    assert written == dict(schemas())
    assert (directory / "notes.txt").read_text() == "mine"


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(main, ["schemas", str(tmp_path / "file" / "below")])
    assert answer.exit_code == 2
    assert "cannot be written" in answer.stderr


def test_the_schemas_of_the_repository_are_those_of_the_models() -> None:
    stored = {each.name: each.read_text(encoding="utf-8") for each in SCHEMAS.glob("*.json")}
    assert stored == dict(schemas()), "the models have changed: make schemas"
