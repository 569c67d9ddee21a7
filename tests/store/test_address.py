"""Addresses of the store: the sentinels with their login, the servers with theirs."""

from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError
from edge.store.address import endpoint_of, is_sentinel, sentinel_address_of, shown
from edge.store.connection import Endpoint


def test_sentinel_address_keeps_the_two_logins_apart() -> None:
    url = "redis+sentinel://edge:p%40ss@h1:26379,h2:26380/line"
    found = sentinel_address_of(RedisSettings(url=url, sentinel_username="watch", sentinel_password="own"))
    assert is_sentinel(url)
    assert found.service == "line"
    assert found.sentinels == (
        Endpoint(host="h1", port=26379, username="watch", password="own"),
        Endpoint(host="h2", port=26380, username="watch", password="own"),
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
