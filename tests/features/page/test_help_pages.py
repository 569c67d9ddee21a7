"""The manual is served behind the login with the policy of every page, file by file, and no other file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.page.openapi import PREFIX
from edge.features.page.pages import MANUAL, PAGES
from edge.features.page.services import WebServices
from tests.features.page.serving import Browser, serving
from tests.features.page.test_manual import JOBS
from tests.features.page.test_manual import folder as folder  # noqa: PLC0414 - a fixture


@pytest_asyncio.fixture
async def browser(services: WebServices, folder: Path) -> AsyncIterator[Browser]:
    async with serving(replace(services, manual=(folder.parent / "none", folder))) as found:
        yield found


async def test_manual_needs_the_login_and_has_the_policy_of_a_page(browser: Browser) -> None:
    for path in ("/help", f"/help/{JOBS}", "/help/_images/a.svg"):
        reply = await browser.get(path)
        assert (reply.status, reply.headers["location"].partition("?")[0]) == (303, "/login"), path
    eve = await browser.logged_in("eve")
    page, station = await eve.get(f"/help/{JOBS}"), await eve.get("/")
    assert page.status == 200
    assert page.headers["content-security-policy"] == station.headers["content-security-policy"]
    assert "elsewhere" not in page.text
    assert "document.title" not in page.text
    assert "Jobs &amp; orders · edge</title>" in page.text
    picture = await eve.get("/help/_images/a.svg")
    assert (picture.status, picture.headers["content-type"]) == (200, "image/svg+xml")
    assert "sandbox" in picture.headers["content-security-policy"]


async def test_addresses_of_the_manual_are_those_of_the_gateway(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    text = (await eve.get(f"/help/{JOBS}")).text
    for address in ("/help/docs/reference/cli.html#stop", "/help/_images/a.svg", f"/help/{JOBS}#jobs"):
        assert f'"{address}"' in text, address
    assert '"https://example.org/"' in text
    assert "headerlink" not in text


@pytest.mark.parametrize(
    "name",
    [
        "../secret.html",
        "docs/../../secret.html",
        "%2e%2e/secret.html",
        "..%2fsecret.html",
        "%2Fetc%2Fpasswd",
        "/etc/passwd",
        "link.html",
        "searchindex.js",
        "docs",
        "_images/",
        "docs/how-to/none.html",
        "a%00.html",
    ],
)
async def test_file_outside_of_the_manual_is_not_found(browser: Browser, name: str) -> None:
    eve = await browser.logged_in("eve")
    reply = await eve.get(f"/help/{name}")
    assert reply.status == 404, reply
    assert "Jobs" not in reply.text.split("<main", 1)[-1]


async def test_search_finds_headings_before_words_of_pages(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    found = (await eve.get("/help?text=stop")).text
    assert found.index("/help/docs/reference/cli.html#stop") < found.index('"/help/docs/reference/cli.html"')
    assert "/help/docs/reference/cli.html" in (await eve.get("/help?text=torques%20command")).text
    assert "Nothing in the manual has these words." in (await eve.get("/help?text=zebra")).text
    assert "<script>" not in (await eve.get("/help?text=%3Cscript%3E")).text


async def test_page_without_a_manual_names_the_command(services: WebServices) -> None:
    async with serving(replace(services, manual=())) as browser:
        eve = await browser.logged_in("eve")
        for path in ("/help", f"/help/{JOBS}"):
            reply = await eve.get(path)
            assert reply.status == 200
            assert "The manual is not installed." in reply.text
        assert (await eve.get("/help/_images/a.svg")).status == 404
        german = (await eve.get("/help", accept_language="de")).text
        assert "Das Handbuch ist nicht installiert." in german


async def test_page_leads_to_the_page_of_the_manual_about_it(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    for path, name in MANUAL.items():
        if path in {"/", "/jobs", "/alarms", "/results", "/equipment", "/gateway"}:
            assert f'href="/help/docs/{name.partition("#")[0]}.html' in (await eve.get(path)).text, path
    # The help is about itself.
    assert PAGES.keys() - MANUAL.keys() == {"/help"}
    assert PREFIX not in MANUAL


@pytest.mark.parametrize(("path", "name"), MANUAL.items())
def test_manual_has_the_page_and_the_heading_of_each_link(path: str, name: str) -> None:
    page, _, anchor = name.partition("#")
    text = Path("docs", f"{page}.md").read_text(encoding="utf-8")
    headings = [line.lstrip("#0123456789. ").strip() for line in text.splitlines() if line.startswith("#")]
    slugs = {
        "".join(sign for sign in heading.casefold().replace(" ", "-") if sign.isalnum() or sign == "-")
        for heading in headings
    }
    assert not anchor or anchor in slugs, (path, anchor)
