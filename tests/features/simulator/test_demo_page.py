"""The page of the demo has its own address and a user with a password of this run."""

import tomllib
from pathlib import Path

from edge.access.users import read_users
from edge.features.page.settings import WebSettings
from edge.features.simulator.demo_page import NAME, DemoPage, page_section
from edge.model.role import Role


def test_page_has_settings_and_a_user(tmp_path: Path) -> None:
    page, other = DemoPage(), DemoPage()
    assert page.password != other.password
    file = tmp_path / 'a "people" file'
    found = tomllib.loads(page.section(file))
    settings = WebSettings(**found["web"])
    assert (settings.address, list(settings.conflicts())) == (("127.0.0.1", page.port), [])
    assert read_users(Path(found["users"]["file"]))[NAME].role is Role.ENGINEER
    assert page.address == f"http://localhost:{page.port}/"


def test_scene_without_a_page_has_no_web_settings(tmp_path: Path) -> None:
    assert page_section(None, tmp_path) == ""
    assert "[web]" in page_section(DemoPage(), tmp_path)
