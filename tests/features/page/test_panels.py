"""Which browsers are panels, how large their targets are, and when their logins end."""

from ipaddress import ip_network

import pytest

from edge.access.login import Users
from edge.features.page.panels import Panels, target_px
from edge.features.page.sessions import WebSessions
from edge.features.page.settings import WebSettings
from edge.model.user import Role
from tests.features.page.serving import services_of, serving
from tests.station.plant import Clock, Plant

LOOPBACK = Panels((ip_network("127.0.0.1"), ip_network("::1"), ip_network("192.0.2.0/28")))
LOCAL = {"host": "localhost:8080"}


def test_target_of_a_panel_is_at_least_twelve_millimetres() -> None:
    assert [target_px(density) for density in (96, 133, 170)] == [48, 64, 84]


@pytest.mark.parametrize(
    ("address", "headers", "is_panel"),
    [
        ("127.0.0.1", LOCAL, True),
        ("::1", {"host": "[::1]:8080"}, True),
        ("::ffff:127.0.0.1", LOCAL, True),
        ("127.0.0.1", {"host": "evil.example"}, False),
        ("127.0.0.1", LOCAL | {"x-forwarded-for": "192.0.2.7"}, False),
        ("192.0.2.7", {"host": "gateway"}, True),
        ("192.0.2.7", {"host": "gateway", "via": "1.1 proxy"}, False),
        ("192.0.2.16", {"host": "gateway"}, False),
        ("", LOCAL, False),
    ],
)
def test_panel_is_known_by_its_address(address: str, headers: dict[str, str], *, is_panel: bool) -> None:
    assert LOOPBACK.has(address, headers) is is_panel


def test_gateway_without_the_setting_has_no_panel() -> None:
    assert not WebSettings(listen="127.0.0.1:8080").panels.has("127.0.0.1", LOCAL)
    assert WebSettings(listen="127.0.0.1:8080", panel=True).panels.has("127.0.0.1", LOCAL)


def test_login_at_a_panel_ends_before_that_of_another_browser() -> None:
    clock = Clock()
    sessions = WebSessions(lambda: clock.now, 900, 28_800, lambda _: Role.OPERATOR)
    desk, panel = sessions.open("alice", Role.OPERATOR, "", ""), sessions.open("max", Role.OPERATOR, "", "", 300)
    clock.now += 301_000
    assert [bool(sessions.find(key)) for key in (desk, panel)] == [True, False]


async def test_page_of_a_panel_has_its_style_and_its_idle_time(plant: Plant, users: Users) -> None:
    for panels, media, idle in ((LOOPBACK, "all", 'data-idle="300"'), (Panels(), "(pointer: coarse)", "")):
        async with serving(services_of(plant, users, panels=panels)) as browser:
            page = (await (await browser.logged_in("alice")).get("/")).text
            assert f'media="{media}' in page
            assert idle in page
            assert ("data-idle" in page) is bool(idle)
