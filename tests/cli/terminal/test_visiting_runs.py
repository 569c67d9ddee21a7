"""Decisions made by a command use the settings of the gateway."""

from pathlib import Path

import pytest

from edge.cli.terminal.store_access import open_access
from edge.cli.terminal.visiting_runs import visiting_runs


@pytest.fixture
def short_retention(settings_file: Path) -> Path:
    settings_file.write_text(settings_file.read_text() + "[retention]\nended_jobs = 77\ndecisions = 0\n")
    return settings_file


async def test_job_ended_by_a_command_has_the_retention_of_the_settings(short_retention: Path) -> None:
    async with open_access(short_retention) as at:
        context = (await visiting_runs(at)).context
    assert (context.keep_ended_ms, context.most_decisions) == (77_000, 0)
