"""Settings of the documentation site: Sphinx renders the Markdown pages of this checkout, without any network."""

import tomllib
from pathlib import Path

from sphinx.application import Sphinx

_ROOT = Path(__file__).parents[2]
_SECTIONS = {
    "Start": ("/docs/why", "/docs/start"),
    "How to": ("/docs/how-to/first-job", "/docs/how-to/install", "/docs/how-to/*"),
    "Reference": ("/docs/reference/*",),
    "Explanation": ("/docs/explanation/*", "/docs/decisions/*"),
    "Project": ("/docs/support", "/README", "/CONTRIBUTING", "/SECURITY", "/CHANGELOG", "/ansible/README"),
}
"""Caption of the side bar -> its pages."""

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
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def _add_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Append the side bar to the first page: in the file it would disturb readers of the Markdown."""
    if page == root_doc:
        for caption, pages in _SECTIONS.items():
            source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Register the side bar."""
    app.connect("source-read", _add_navigation)
