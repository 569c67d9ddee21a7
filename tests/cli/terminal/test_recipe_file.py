"""Recipes of commands are compiled, or all faults are printed and the exit status is 2."""

import pytest

from edge.cli.terminal.recipe_file import compiled_or_exit
from tests.station.plant import LINEAR


def test_valid_recipe_is_compiled() -> None:
    assert compiled_or_exit(LINEAR).initial == "one"


def test_faults_are_printed_and_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compiled_or_exit({})
    assert ended.value.code == 2
    assert "edge: " in capsys.readouterr().err
