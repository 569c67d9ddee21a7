"""The answers of sentinels: read as they come, and put together to one primary."""

from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError
from edge.store.connection import Endpoint
from edge.store.sentinels import (
    Primary,
    SentinelView,
    agreed,
    endpoint_of,
    has_majority,
    is_sentinel,
    sentinel_address_of,
    shown,
    view_of,
)

# A reply to SENTINEL MASTER of redis-server 7.0.15, cut to the fields that are used and two others.
FIELDS = {
    "name": "line",
    "ip": "10.0.0.1",
    "port": "6379",
    "flags": "s_down,master,disconnected",
    "last-ok-ping-reply": "470",
    "down-after-milliseconds": "2000",
    "failover-timeout": "180000",
    "config-epoch": "4",
    "num-other-sentinels": "2",
    "quorum": "2",
    "role-reported": "master",
}
ADDRESS = ("10.0.0.1", "6379")
OTHERS = [{"runid": "b", "ip": "10.0.0.8", "port": "26379"}, {"runid": "", "ip": "10.0.0.9", "port": "26379"}]


def test_view_has_what_a_sentinel_reports() -> None:
    assert view_of("a", ADDRESS, FIELDS, OTHERS) == SentinelView(
        sentinel_id="a",
        primary=Primary("10.0.0.1", 6379, 4),
        flags=frozenset({"s_down", "master", "disconnected"}),
        last_ok_ping_s=0.47,
        down_after_s=2.0,
        failover_timeout_s=180.0,
        quorum=2,
        sentinels=3,
        known={"b": ("10.0.0.8", 26379)},
    )


def test_view_at_the_end_of_a_failover_names_the_new_primary() -> None:
    """MASTER still reports on the old one, with the epoch of the new one."""
    sentinel_view = view_of("a", ("10.0.0.2", "6379"), FIELDS)
    assert sentinel_view.primary == Primary("10.0.0.2", 6379, 4)
    assert not sentinel_view.is_watched


@pytest.mark.parametrize(("sentinels", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_majority_is_more_than_half_of_the_sentinels(sentinels: int, majority: int) -> None:
    assert view_of("a", ADDRESS, {**FIELDS, "num-other-sentinels": str(sentinels - 1)}).majority == majority


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ([], None),
        ([("10.0.0.1", 1)], ("10.0.0.1", 1)),
        ([("10.0.0.1", 1), ("10.0.0.1", 1), ("10.0.0.2", 2)], ("10.0.0.2", 2)),
        ([("10.0.0.2", 0), ("10.0.0.1", 0), ("10.0.0.1", 0)], ("10.0.0.1", 0)),
    ],
    ids=["none", "one", "the latest failover", "most of one epoch"],
)
def test_agreed_primary_is_that_of_the_latest_failover(
    named: list[tuple[str, int]], expected: tuple[str, int] | None
) -> None:
    views = [
        view_of(str(at), (ip, "6379"), {**FIELDS, "config-epoch": str(epoch)}) for at, (ip, epoch) in enumerate(named)
    ]
    primary = agreed(views)
    assert (primary and (primary.host, primary.config_epoch)) == expected


@pytest.mark.parametrize(
    ("sentinels", "answers", "expected"), [(3, 0, False), (3, 1, False), (3, 2, True), (1, 1, True)]
)
def test_majority_of_the_sentinels_has_answered(sentinels: int, answers: int, *, expected: bool) -> None:
    fields = {**FIELDS, "num-other-sentinels": str(sentinels - 1)}
    assert has_majority([view_of(str(at), ADDRESS, fields) for at in range(answers)]) is expected


def test_sentinel_address_keeps_the_two_logins_apart() -> None:
    url = "redis+sentinel://edge:p%40ss@h1:26379,h2:26380/line"
    found = sentinel_address_of(RedisSettings(url=url, sentinel_username="watch", sentinel_password="own"))
    assert is_sentinel(url)
    assert found.service == "line"
    assert found.sentinels == (
        Endpoint(host="h1", port=26379, username="watch", password="own", is_store=False),
        Endpoint(host="h2", port=26380, username="watch", password="own", is_store=False),
    )
    assert (found.server.username, found.server.password) == ("edge", "p@ss")


def test_password_of_the_settings_precedes_that_of_a_sentinel_address() -> None:
    settings = RedisSettings(url="redis+sentinel://edge:old@h1:26379/line", password="new")
    assert sentinel_address_of(settings).server.password == "new"


def test_missing_certificate_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    settings = RedisSettings(url="rediss://h", ca_file=str(tmp_path / "gone.pem"))
    with pytest.raises(SettingsError, match=r"certificate cannot be read.*gone\.pem"):
        endpoint_of(settings, settings.url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis+sentinel://:p%40ss@h1:26379,h2:26379/line", "redis+sentinel://h1:26379,h2:26379/line"),
        ("redis://h/0", "redis://h/0"),
    ],
)
def test_shown_address_has_no_login(url: str, expected: str) -> None:
    assert shown(url) == expected
