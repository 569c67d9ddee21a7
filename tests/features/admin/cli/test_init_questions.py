"""The questions of `edge init` accept valid answers and are repeated after an invalid one."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from edge.features.admin.cli.init import ask_site
from edge.features.admin.site_settings import Site, SiteEquipment


def ask(*answers: str) -> tuple[str, Site | None]:
    sites: list[Site] = []

    @click.command
    def asking() -> None:
        sites.append(ask_site(Path("/etc/x"), "ADDRESSES"))

    result = CliRunner().invoke(asking, input="".join(f"{answer}\n" for answer in answers))
    return result.output, sites[0] if sites else None


def test_answers_become_the_site_settings() -> None:
    _, site = ask("line-3", "st-7", "mqtts://b", "bob", "secret", "w", "", "a.v1, b.v2", "")
    assert site == Site(
        "line-3", ("st-7",), "mqtts://b", "bob", "secret", (SiteEquipment("w", "mqtt", ("a.v1", "b.v2")),)
    )


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        (("line 3",), "expected a name"),
        (("n", "st+"), "expected a name"),
        (("n", "s", "http://b"), "mqtts:"),
        (("n", "s", "mqtt://"), "expected a host"),
        (("n", "s", "mqtt://b", "", "w x"), "expected a name"),
        (("n", "s", "mqtt://b", "", "w", "ijt+http://h"), "is not an address"),
        (("n", "s", "mqtt://b", "", "w", "ijt+"), "is not an address"),
        (("n", "s", "mqtt://b", "", "w", "robot+opc.tcp://h"), "is not an address"),
        (("n", "s", "mqtt://b", "", "w", "mqtt", ","), "at least one"),
        (("n", "s", "mqtt://b", "", "w", "mqtt", "a", "w"), "there already"),
        (("n", "s", "mqtt://b", "", "w", "mqtt", "a", "v", "mqtt", "b,a"), "a is used by w"),
        (("n", "s", "none", "w", "mqtt"), "no broker"),
    ],
)
def test_wrong_answer_is_asked_for_again(answers: tuple[str, ...], fault: str) -> None:
    output, site = ask(*answers)
    assert site is None
    assert fault in output
    # The runner has no answer left for the same question.
    assert output.count(output.splitlines()[-1]) >= 2


def test_site_without_a_broker_needs_no_user() -> None:
    _, site = ask("n", "s", "none", "")
    assert site == Site("n", ("s",), "")
