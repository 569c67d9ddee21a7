"""A manual is found where it is, file by file, and searched by headings and words."""

import json
from pathlib import Path

import pytest

from edge.features.page.manual import find_site, names_of, read_page, search
from edge.foundation.errors import Refused

PAGE = """<!doctype html><html><head><title>Jobs - microdcs-edge</title><script>document.title = "x"</script></head>
<body><nav>elsewhere</nav><article role="main" id="furo-main-content"><section id="jobs">
<h1>Jobs &amp; orders<a class="headerlink" href="#jobs" title="Link to this heading">¶</a></h1>
<p><a class="reference internal" href="../reference/cli.html#stop">cli</a> <img src="../../_images/a.svg"/>
<a href="https://example.org/">there</a> <a href="#jobs">here</a></p></section></article></body></html>"""
INDEX = {
    "alltitles": {"Jobs & orders": [[0, "jobs"]], "Stop a job": [[1, "stop"]]},
    "docnames": ["docs/how-to/watch-a-job", "docs/reference/cli", "docs/README"],
    "titles": ["Jobs & orders", "Commands", "Documentation"],
    "terms": {"torqu": [0, 1], "stop": 1},
    "titleterms": {"command": 1},
}
JOBS = "docs/how-to/watch-a-job.html"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manual of three pages and a picture, next to a file that is not part of it."""
    site = tmp_path / "site"
    for name in (JOBS, "docs/reference/cli.html", "docs/README.html"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(PAGE, encoding="utf-8")
    (site / "_images").mkdir()
    (site / "_images/a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    (site / "searchindex.js").write_text(f"Search.setIndex({json.dumps(INDEX)})", encoding="utf-8")
    (tmp_path / "secret.html").write_text(PAGE, encoding="utf-8")
    (site / "link.html").symlink_to(tmp_path / "secret.html")
    return site


def test_first_folder_with_a_manual_counts(folder: Path) -> None:
    assert find_site(()) is None
    assert find_site((folder.parent,)) is None
    site = find_site((folder.parent / "none", folder))
    assert site
    assert sorted(names_of(site)) == ["_images/a.svg", "docs/README.html", JOBS, "docs/reference/cli.html"]


def test_search_takes_words_and_their_stems(folder: Path) -> None:
    site = find_site((folder,))
    assert site
    assert [hit.heading for hit in search(site, "Stop")] == ["Stop a job", "Commands"]
    assert [hit.title for hit in search(site, "torques command")] == ["Commands"]
    assert search(site, " ") == []


def test_manual_that_is_replaced_is_read_again(folder: Path) -> None:
    site = find_site((folder,))
    assert site
    assert read_page(site, JOBS).title == "Jobs & orders"
    (folder / JOBS).write_text(PAGE.replace("Jobs &amp; orders", "New"), encoding="utf-8")
    (folder / "searchindex.js").write_text("Search.setIndex(", encoding="utf-8")
    again = find_site((folder,))
    assert again
    assert again != site
    assert read_page(again, JOBS).title == "New"
    with pytest.raises(Refused, match="cannot be searched"):
        search(again, "jobs")
