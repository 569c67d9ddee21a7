"""The package of the documentation has the pages where its description says."""

import subprocess
from pathlib import Path

import pytest

from edge.features.page.manual import FOLDERS, find_site, names_of, read_page, search
from edge.features.page.pages import MANUAL
from tests.system.conftest import ROOT, SUITE

pytestmark = pytest.mark.system


def _package() -> Path:
    (package,) = (ROOT / "dist").glob(f"microdcs-edge-doc_*+deb{ {'bookworm': 12, 'trixie': 13}[SUITE] }u*_all.deb")
    return package


def test_documentation_package_has_the_page_that_the_guide_names() -> None:
    listed = subprocess.run(["dpkg-deb", "--contents", _package()], check=True, capture_output=True, text=True).stdout
    folder = "./usr/share/doc/microdcs-edge/html"
    files = {line.split()[-1] for line in listed.splitlines()}
    assert {f"{folder}/index.html", f"{folder}/searchindex.js", f"{folder}/docs/how-to/install.html"} <= files
    assert [file for file in files if file.startswith(folder) and file.endswith(".gz")] == []


def test_gateway_can_show_every_page_of_the_package(tmp_path: Path) -> None:
    """The addresses of *Help* are those of the package, and each page has the form that the gateway reads."""
    subprocess.run(["dpkg-deb", "--extract", _package(), tmp_path], check=True)
    site = find_site((Path(f"{tmp_path}{FOLDERS[-1]}"),))
    assert site
    pages = [name for name in names_of(site) if name.startswith("docs/") and name.endswith(".html")]
    assert len(pages) > 100
    assert [name for name in pages if not read_page(site, name).article] == []
    assert {f"docs/{name.partition('#')[0]}.html" for name in MANUAL.values()} <= set(pages)
    assert any(hit.address == "/help/docs/how-to/users.html#pin-and-badge" for hit in search(site, "PIN badge"))
