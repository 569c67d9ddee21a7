"""Settings of the documentation site: Sphinx renders the Markdown pages of this checkout, without any network."""

import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx

_ROOT = Path(__file__).parents[2]
_FIRST = {"Start": ("/docs/why", "/docs/start")}
_LAST = {"Project": ("/docs/support", "/CHANGELOG", "/README", "/CONTRIBUTING", "/SECURITY", "/docs/decisions/README")}
"""Caption of the side bar -> its pages. Between them are the roles of docs/README.md with the pages that it lists."""

project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
author = f"the authors of {project}"
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["docs/**.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "ansible/README.md"]
# These folders hold no page; Sphinx does not walk through them.
exclude_patterns = [".*", "build", "debian", "dist", "edge", "hw", "schemas", "systemd", "tests", "ansible/roles"]
myst_heading_anchors = 4
# A code block without a language is shown as it stands.
highlight_language = "none"
html_theme = "furo"
html_title = project
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["index.html"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def _roles(page: str) -> dict[str, list[str]]:
    """Return the pages of each role, each where the page of all pages lists it first."""
    seen = {entry for entries in (*_FIRST.values(), *_LAST.values()) for entry in entries}
    roles = {}
    for section in page.split("\n## ")[1:]:
        role, _, rows = section.partition("\n")
        linked = [f"/{os.path.normpath(f'docs/{link}')}" for link in re.findall(r"\]\(([\w./-]+)\.md", rows)]
        roles[role] = [link for link in dict.fromkeys(linked) if link not in seen and "/decisions/" not in link]
        seen.update(linked)
    return roles


def _add_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Append the side bar to its pages: in the file it would disturb readers of the Markdown."""
    captions: dict[str, Iterable[str]] = {}
    if page == root_doc:
        captions = {**_FIRST, **_roles(source[0]), **_LAST}
    elif page == "docs/decisions/README":
        captions = {"Decisions": ("/docs/decisions/0*",)}
    for caption, pages in captions.items():
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Register the side bar."""
    app.connect("source-read", _add_navigation)
