"""What the documents name is in the repository: pages, files, and the reference as the records have it."""

import re

import yaml

from config.env import ROOT
from tools import reference

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "docker").rglob("*.md"))

FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|html|js|css|sh))`")
HISTORY = re.compile(r"supersede|^\*Since ", re.IGNORECASE | re.MULTILINE)
"""A decision that was replaced may name files that went with it."""


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    entries = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = re.findall(r"[\w-]+\.md", str(entries))
    assert sorted(pages) == sorted(path.name for path in (ROOT / "docs").glob("*.md")) and len(pages) <= 16
    assert len(list((ROOT / "docs" / "adr").glob("0*.md"))) <= 35


def test_the_reference_is_what_the_records_say() -> None:
    assert reference.PAGE.read_text() == reference.page()


def test_every_file_that_a_page_names_is_there() -> None:
    files = [str(path) for path in ROOT.rglob("*") if path.suffix in {".py", ".html", ".js", ".css", ".sh"}]
    told = [(page, page.read_text()) for page in PAGES]
    named = [(page.name, name) for page, text in told if not HISTORY.search(text) for name in FILE.findall(text)]
    assert [one for one in named if not any(path.endswith(f"/{one[1]}") for path in files)] == []
