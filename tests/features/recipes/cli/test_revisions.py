"""`edge recipes list`, `show`, `history`, `release` and `rollback` on a real store."""

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from edge.cli import main
from edge.features.recipes import keys as recipes_keys
from edge.features.recipes.drafts import load_drafts
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.sfc.recipes import action, chain, recipe, transition

PAGE = Path("docs/how-to/release-a-recipe.md").read_text(encoding="utf-8")
ONE = json.dumps(chain("A B", action("a", "A")))
TWO = json.dumps(chain("A B C", action("a", "A")))
STUCK = json.dumps(recipe("A B", [transition("A", "B", "actions.a.failed")], [action("a", "A")]))


async def release(edge: Edge, given: str, reason: str = "first") -> str:
    """Call `edge recipes release` with a recipe; return what it prints."""
    answer = await edge("recipes", "release", "-", "--id", "WM", "--reason", reason, given=given)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


async def test_released_recipe_is_listed_with_revision_and_reason(edge: Edge) -> None:
    assert "WM is revision 1, " in await release(edge, ONE)
    assert "WM is revision 2, " in await release(edge, TWO, "a third step")
    (listed,) = json.loads((await edge("recipes", "list", "--json")).stdout)["recipes"]
    assert (listed["id"], listed["revision"]["number"], listed["revision"]["reason"]) == ("WM", 2, "a third step")
    revisions = json.loads((await edge("recipes", "history", "WM", "--json")).stdout)["revisions"]
    assert [(item["number"], item["source"]) for item in revisions] == [(2, "command"), (1, "command")]
    assert "a third step" in (await edge("recipes", "history", "WM")).stdout


async def test_same_recipe_again_makes_no_revision(edge: Edge) -> None:
    await release(edge, ONE)
    assert "WM is revision 1, " in await release(edge, ONE, "again")


async def test_rollback_makes_a_new_revision_of_an_earlier_recipe(edge: Edge) -> None:
    first = (await release(edge, ONE)).split()[-1]
    await release(edge, TWO)
    answer = await edge("recipes", "rollback", "WM", "--to", "1", "--reason", "faults")
    assert answer.stdout.rstrip().endswith(f"WM is revision 3, {first}")
    assert json.loads((await edge("recipes", "show", "WM")).stdout) == json.loads(ONE)
    assert json.loads((await edge("recipes", "show", "WM", "--revision", "2")).stdout) == json.loads(TWO)
    assert "back to 1: faults" in (await edge("recipes", "history", "WM")).stdout


async def test_recipe_at_which_a_job_stands_still_is_not_released(edge: Edge) -> None:
    answer = await edge("recipes", "release", "-", "--id", "WM", "--reason", "try", given=STUCK)
    assert answer.exit_code == 1
    assert "step A: no exit can become true" in answer.stderr
    unknown = await edge("recipes", "history", "WM")
    assert (unknown.exit_code, "edge recipes list" in unknown.stderr) == (1, True)


async def test_work_master_of_a_command_has_a_revision_too(edge: Edge) -> None:
    assert (await edge("station", "set", "workmaster", "-", "--id", "WM", given=ONE)).exit_code == 0
    (revision,) = json.loads((await edge("recipes", "history", "WM", "--json")).stdout)["revisions"]
    assert (revision["number"], revision["source"], revision["reason"]) == (1, "command", "")


async def test_commands_of_the_page_work_in_their_order(
    edge: Edge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^    edge (.*)", PAGE, re.MULTILINE)]
    for number in range(1, 4):
        given = json.dumps(chain(" ".join("ABCDE"[:number]), action("a", "A")))
        answer = await edge("recipes", "release", "-", "--id", "WM-AXLE-FIT-001", "--reason", "before", given=given)
        assert answer.exit_code == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "axle.json").write_text(TWO.replace('"C"', '"D"'), encoding="utf-8")
    assert len(commands) == 10
    for command in commands:
        arguments, target = (command[:-2], command[-1]) if ">" in command else (command, "")
        needs_store = "--id" in arguments or arguments[1] not in {"check", "diff"}
        answer = await edge(*arguments) if needs_store else CliRunner().invoke(main, arguments)
        # The released recipe and the new one differ.
        assert answer.exit_code == (1 if "diff" in arguments else 0), answer.output
        if target:
            (tmp_path / target).write_text(answer.stdout, encoding="utf-8")
    assert "back to 3: camera faults since revision 4" in (await edge("recipes", "history", "WM-AXLE-FIT-001")).stdout


async def test_second_person_confirms_a_release_of_another(edge: Edge, store: Store, settings_file: Path) -> None:
    with settings_file.open("a", encoding="utf-8") as file:
        file.write("\n[recipes]\nsecond_person = true\n")
    answer = await edge("recipes", "release", "-", "--id", "WM", "--reason", "first", given=ONE)
    (draft,) = await load_drafts(store)
    assert draft.request is not None
    assert f"edge recipes confirm {draft.id}" in answer.stdout
    refused = await edge("recipes", "confirm", draft.id)
    assert refused.exit_code == 1
    assert "another person confirms it" in refused.stderr
    listed = json.loads((await edge("recipes", "drafts", "--json")).stdout)["drafts"]
    assert (listed[0]["id"], listed[0]["request"]["reason"]) == (draft.id, "first")
    assert "first" in (await edge("recipes", "drafts", "--wide")).stdout
    by_ben = replace(draft, request=replace(draft.request, by="ben"))
    await store.execute(
        "HSET", recipes_keys.recipe_draft(store.keys, draft.id), "draft", msgspec.json.encode(by_ben).decode()
    )
    assert "WM is revision 1, " in (await edge("recipes", "confirm", draft.id)).stdout


async def test_revisions_are_compared_by_their_numbers(edge: Edge) -> None:
    await release(edge, ONE)
    await release(edge, TWO)
    answer = await edge("recipes", "diff", "1", "2", "--id", "WM")
    assert (answer.exit_code, "+ step C" in answer.stdout) == (1, True)
    assert (await edge("recipes", "diff", "1", "9", "--id", "WM")).exit_code == 1
    assert (await edge("recipes", "diff", "1", "x", "--id", "WM")).exit_code == 2
