"""The page is off by default, and passwords are not sent over a network unencrypted."""

import pytest

from edge.config import Settings
from edge.features.page.settings import WebSettings


def test_page_is_off_by_default() -> None:
    assert WebSettings().listen == ""
    assert list(WebSettings().conflicts(Settings())) == []


@pytest.mark.parametrize(
    ("listen", "address", "is_tls"),
    [("127.0.0.1:8080", ("127.0.0.1", 8080), False), ("tls://[::]:8443", ("::", 8443), True), ("", ("", 0), False)],
)
def test_address_is_read(listen: str, address: tuple[str, int], is_tls: object) -> None:
    settings = WebSettings(listen=listen)
    assert (settings.address, settings.is_tls, list(settings.conflicts(Settings()))) == (address, is_tls, [])


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (WebSettings(listen="0.0.0.0:8080"), "listen"),
        (WebSettings(listen="gateway.example:8080"), "listen"),
        (WebSettings(listen="127.0.0.1:99999"), "listen"),
        (WebSettings(listen="tls://0.0.0.0:8443", cert_file="c"), "cert_file"),
        (WebSettings(listen="127.0.0.1:80", cert_file="c", key_file="k"), "listen"),
    ],
)
def test_conflict_names_its_key(settings: WebSettings, key: str) -> None:
    assert [str(conflict).startswith(key) for conflict in settings.conflicts(Settings())] == [True]
