"""`edge schemas` writes the schemas of all models, which are those of the repository."""

from pathlib import Path

from click.testing import CliRunner

from edge.app.schemas import ASYNCAPI_FILE, asyncapi, schemas
from edge.cli import main

SCHEMAS = Path(__file__).parents[2] / "schemas"


def made() -> dict[str, str]:
    """Return the text of each file that the command writes."""
    return dict(schemas()) | {ASYNCAPI_FILE: asyncapi()}


def test_every_schema_is_written_and_other_files_are_unchanged(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    answer = CliRunner().invoke(main, ["schemas", str(directory)])
    assert answer.exit_code == 0, answer.output
    assert {file.name: file.read_text(encoding="utf-8") for file in directory.iterdir()} == made()
    (directory / "notes.json").write_text("mine")
    assert CliRunner().invoke(main, ["schemas", str(directory)]).exit_code == 0
    assert (directory / "notes.json").read_text() == "mine"


def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(main, ["schemas", str(tmp_path / "file" / "below")])
    assert answer.exit_code == 2
    assert "cannot be written" in answer.stderr


def test_schemas_of_the_repository_match_the_models() -> None:
    stored = {file.name: file.read_text(encoding="utf-8") for file in SCHEMAS.glob("*.json")}
    ours = {name: text for name, text in stored.items() if name in made() or "CloudEvents type" in text}
    assert ours == made(), "the models have changed: make schemas, and remove those of models there are no more"
