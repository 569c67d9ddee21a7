"""The package of the documentation has the pages where its description says."""

import subprocess

import pytest

from tests.system.conftest import ROOT, SUITE

pytestmark = pytest.mark.system


def test_documentation_package_has_the_page_that_the_guide_names() -> None:
    (package,) = (ROOT / "dist").glob(f"microdcs-edge-doc_*+deb{ {'bookworm': 12, 'trixie': 13}[SUITE] }u*_all.deb")
    listed = subprocess.run(["dpkg-deb", "--contents", package], check=True, capture_output=True, text=True).stdout
    folder = "./usr/share/doc/microdcs-edge/html"
    files = {line.split()[-1] for line in listed.splitlines()}
    assert {f"{folder}/index.html", f"{folder}/searchindex.js", f"{folder}/docs/how-to/install.html"} <= files
    assert [file for file in files if file.startswith(folder) and file.endswith(".gz")] == []
