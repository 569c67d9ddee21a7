"""Requests are bounded, and every answer restricts the browser by its headers."""

import pytest

from edge.features.page.guard import MOST_BODY_BYTES, decode_path, path_part
from tests.features.page.serving import Browser


def test_encoded_slash_does_not_split_a_path_segment() -> None:
    assert path_part(decode_path(b"/jobs/a%2Fb%252F%20c")) == "/jobs/a/b%2F c"
    assert decode_path(b"/jobs/a%2fb/chart").count("/") == 3


async def test_every_answer_has_a_content_security_policy(browser: Browser) -> None:
    for path in ("/login", "/static/page.js", "/nope", "/api/v1/jobs", "/api/v1/nope"):
        reply = await browser.get(path)
        assert "default-src 'self'" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"


async def test_large_body_is_refused_without_reading(browser: Browser) -> None:
    body = b"x" * (MOST_BODY_BYTES + 1)
    headers = {"origin": browser.origin, "content-type": "application/json"}
    reply = await browser.send("POST", "/api/v1/session", headers, body)
    assert reply.status == 413
    assert reply.json == {"kind": "out_of_bounds", "reason": "the body has more than 65536 bytes", "advice": ""}


async def test_large_request_header_is_refused(browser: Browser) -> None:
    assert (await browser.get("/login", x="a" * 30_000)).status in {400, 431}


@pytest.mark.parametrize("line", ["/login?x={}", "/jobs/{}", "/api/v1/jobs?scope={}"])
async def test_long_request_line_is_refused(browser: Browser, line: str) -> None:
    """One of 60 KB that came in one piece was accepted."""
    assert (await browser.get(line.format("a" * 60_000))).status in {400, 414}
    assert (await browser.get(line.format("a" * 9_000))).status == 414
    assert (await browser.get(line.format("a" * 8_000))).status != 414


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/api/v1/jobs/..%2f..%2fetc%2fpasswd/nope",
        "/templates/base.html",
    ],
)
async def test_path_traversal_is_refused(browser: Browser, path: str) -> None:
    assert (await browser.get(path)).status == 404


@pytest.mark.parametrize("path", ["/login?x=%0d%0aset-cookie:a=b", "/login%0d%0aset-cookie:%20a=b"])
async def test_encoded_line_ends_do_not_add_a_header(browser: Browser, path: str) -> None:
    assert "set-cookie" not in (await browser.get(path)).headers


async def test_websocket_is_not_opened(browser: Browser) -> None:
    upgrade = {"connection": "upgrade, close", "upgrade": "websocket", "sec-websocket-version": "13"}
    assert (await browser.send("GET", "/login", upgrade)).status == 200
