"""`edge recipes diff` compares files."""

import json
from pathlib import Path

import msgspec
from click.testing import CliRunner, Result

from edge.cli import main
from edge.features.recipes.changes import InsertAfter, SetTransition
from edge.model.recipe import Recipe, Transition
from tests.features.recipes.editing import LINE, done


def compare(folder: Path, new: Recipe, *options: str) -> Result:
    """Call `edge recipes diff` with LINE and another recipe."""
    files = [folder / "old.json", folder / "new.json"]
    for file, recipe in zip(files, (LINE, new), strict=True):
        file.write_bytes(msgspec.json.encode(recipe))
    return CliRunner().invoke(main, ["recipes", "diff", *map(str, files), *options])


def test_equal_recipes_exit_with_0(tmp_path: Path) -> None:
    answer = compare(tmp_path, LINE)
    assert (answer.exit_code, answer.output) == (0, "the recipes are the same\n")


def test_each_difference_is_a_line(tmp_path: Path) -> None:
    changed = done(done(LINE, InsertAfter("B", "New")), SetTransition(0, Transition("A", "B", "ready")))
    answer = compare(tmp_path, changed)
    assert answer.exit_code == 1
    assert answer.output.splitlines() == [
        "+ step New",
        "~ transition A → B: condition always → ready",
        "+ transition B → New",
        "+ transition New → C",
        "- transition B → C",
    ]


def test_json_has_both_values(tmp_path: Path) -> None:
    answer = compare(tmp_path, done(LINE, SetTransition(0, Transition("A", "B", "ready"))), "--json")
    assert json.loads(answer.stdout)["differences"] == [
        {
            "kind": "changed",
            "element": "transition",
            "name": "A → B",
            "member": "condition",
            "before": "always",
            "after": "ready",
        }
    ]


def test_invalid_recipe_exits_with_2(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"steps": []}')
    answer = CliRunner().invoke(main, ["recipes", "diff", str(file), str(file)])
    assert answer.exit_code == 2
    assert "exactly one step must be initial" in answer.output
