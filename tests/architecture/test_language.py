"""Code and pages are written in plain technical English; the checker finds what is not."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.architecture import language
from tests.architecture.language import CLEAN, clean_files, clean_paths, violations
from tests.architecture.sources import ROOT, modules, nodes, project_files, text


def test_clean_paths_have_no_violations() -> None:
    assert [violation for path in clean_files() for violation in violations(path)] == []


def test_clean_paths_exist() -> None:
    assert [path for path in clean_paths() if not (ROOT / path).exists()] == []


def test_class_names_are_unique_in_the_product() -> None:
    defined: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(str(path))
    twice = {name: paths for name, paths in defined.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if _is_clean(paths)} == {}


def _is_clean(paths: list[str]) -> bool:
    clean = [str(path) for path in clean_files()]
    return all(path in clean for path in paths)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """Give a name."""\n', "opens with 'Give'"),
        ('def f():\n    """Returns a name."""\n', "not a verb of the field"),
        ('def f():\n    """A name."""\n', "not a verb of the field"),
        ('class A:\n    """Who listens."""\n', "opens with 'Who'"),
        ('"""A module."""\n# mend this\n', "write instead: fix"),
        ('"""A module."""\nx = f("nobody listens")\n', "write instead: name the thing"),
        ("told = 1\n", "the name 'told'"),
        ("for each in range(3): ...\n", "a variable is a noun"),
        ('"""A module."""\nx = f("1 is no text")\n', "write instead: is not a"),
        ("def test_" + "x" * 70 + "(): ...\n", "at most 70"),
        ("def test_what_is_old_is_removed(): ...\n", "opens with test_what_"),
        ("def test_broken_link_is_mended(): ...\n", "write instead: fix"),
    ],
)
def test_checker_finds_a_violation(source: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "module.py"
    file.write_text(source)
    monkeypatch.chdir(tmp_path)
    assert expected in "\n".join(violations(file))


@pytest.mark.parametrize(
    "source",
    [
        'class A:\n    @property\n    def f(self):\n        """The name."""\n',
        'def f():\n    """Return the name."""\n',
        '"""A drawing that is laid out."""\n',
        "# calls `tell`\n",
    ],
)
def test_checker_accepts_plain_language(source: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source)
    assert list(violations(file)) == []


def test_checker_ignores_code_on_pages(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Call `tell`.\n\n```\nnobody\n```\n\nThis is told.\n")
    assert list(violations(page)) == [f"{page}:7: 'told': write instead: log, report, publish, return or notify"]


def test_checker_as_a_program_reports_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert language.main([str(Path(__file__))]) == 0
    assert capsys.readouterr().out == ""


def test_list_of_clean_paths_names_each_path_once() -> None:
    assert CLEAN.is_file()
    assert len(set(clean_paths())) == len(clean_paths())


def _glossary() -> list[list[str]]:
    rows = re.findall(r"^\| (?!write |---)(.+) \|$", text(Path("docs/reference/glossary.md")), re.MULTILINE)
    return [row.split(" | ") for row in rows]


def test_pages_use_the_words_of_the_glossary() -> None:
    pages = {
        str(path): text(path).lower()
        for path in project_files()
        if path.suffix == ".md" and path.name not in {"glossary.md", "CHANGELOG.md"}
    }
    used = {word for word, *_ in _glossary() for page in pages.values() if word.lower() in page}
    assert [word for word, *_ in _glossary() if word not in used] == []
    assert [(name, row[3]) for name, page in pages.items() for row in _glossary() if row[3] in page] == []


def test_glossary_names_the_standard_of_each_word() -> None:
    assert len(_glossary()) > 20
    assert [row for row in _glossary() if len(row) != 4 or not all(row)] == []


def test_pages_name_files_that_exist() -> None:
    """Decisions and notes of releases are of their time; the example of a feature is written by its reader."""
    named = {
        (str(path), name.rstrip("/"))
        for path in project_files()
        if path.suffix == ".md"
        and "decisions" not in path.parts
        and path.name not in {"CHANGELOG.md", "add-a-feature.md"}
        for name in re.findall(r"`((?:\.ci|debian|edge|hw|schemas|systemd|tests)/[\w/.*-]+)", text(path))
    }
    assert len(named) > 100
    assert {(path, name) for path, name in named if not list(ROOT.glob(name))} == set()
