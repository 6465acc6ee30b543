"""From an empty folder and README alone to labels: owner, own files, a model, a campaign, judgments, an export.

Each deliberate act of the reader (an address opened, a field filled, a button or key pressed) is counted and printed.
"""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from config.env import ROOT
from tests.instances import PATIENCE, Instance
from tests.modelserver.fixtures import LocalModels
from tests.speed import slowness

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_ACTIONS, MOST_SECONDS = 30, 240
ROWS = {
    "What do owls eat?": ["Owls eat mice.", "Owls fly at night.", "Mice eat seeds."],
    "What do bats eat?": ["Bats eat moths.", "Bats sleep by day.", "Moths like lamps."],
}


class Reader:
    """Somebody at a browser, whose acts are counted."""

    def __init__(self, page: "Page") -> None:
        self.page, self.acts = page, 0

    def open(self, address: str) -> None:
        self.acts += 1
        self.page.goto(address)

    def act(self, place: "Locator", how: str = "click", *values: object) -> None:
        self.acts += 1
        getattr(place, how)(*values)

    def fill(self, label: str, value: object, how: str = "fill") -> None:
        self.act(self.page.get_by_label(label, exact=True), how, value)

    def press(self, button: str, role: str = "button") -> None:
        self.act(self.page.get_by_role(role, name=button, exact=True).first)

    def follow(self, link: str) -> None:
        self.press(link, "link")


def test_the_second_way_of_the_readme_leads_from_an_empty_folder_to_an_export(
    browser: "Browser", model_server: LocalModels, make_instance: Callable[..., Instance], tmp_path: Path
) -> None:
    assert "    make install\n    .venv/bin/python manage.py serve\n" in (ROOT / "README.md").read_text()
    file = tmp_path / "mine.csv"
    lines = [f"{query},{text}" for query, texts in ROWS.items() for text in texts]
    file.write_text("\n".join(["query,document text", *lines]) + "\n")
    began = time.monotonic()
    serve = make_instance(QUORUM_LOOPBACK_ONLY="1").start("manage.py", "serve", "--port", "0")
    assert serve.stdout and serve.stderr
    # What a person reads in the terminal.
    said = ""
    while "one-time token: " not in said:
        line = serve.stderr.readline()
        assert line, said
        said += line
    address = re.search(r"The site is at (\S+)\.", said).group(1)
    token = said.rpartition("one-time token: ")[2].strip()
    assert json.loads(serve.stdout.readline())["url"] == address

    context = browser.new_context(accept_downloads=True)
    context.set_default_timeout(1000 * PATIENCE)
    reader = Reader(context.new_page())
    page = reader.page
    reader.open(address)
    secret = "a long enough secret"
    account = {"One-time token": token, "Username": "olga", "Password": secret, "Password confirmation": secret}
    for label, text in account.items():
        reader.fill(label, text)
    reader.press("Create owner account")

    reader.fill("Title", "Animals")
    reader.fill("Files", file, "set_input_files")
    reader.press("Create collection")
    reader.press("Import")

    reader.follow("Add a model")
    reader.fill("Provider", "openai-compatible", "select_option")
    reader.fill("Model", "yes")
    reader.fill("Base URL", model_server.openai)
    reader.press("Add model")
    reader.press("Test yes")
    page.get_by_text("yes works", exact=False).first.wait_for()

    reader.follow("Next: first campaign")
    reader.press("Show estimate")
    reader.press("Start now")

    page.get_by_text("6 blind checks").first.wait_for()
    reader.follow("Judge")
    reader.press("Start judging")
    seen = ""
    for _ in range(5):
        page.locator(f"#desk[data-item]:not([data-item='{seen}'])").wait_for()
        seen = str(page.locator("#desk").get_attribute("data-item"))
        # A new pair rests for a moment, so that no second press judges what nobody read.
        page.locator("#desk button.grade:enabled").first.wait_for()
        page.wait_for_timeout(600)
        reader.acts += 1
        page.keyboard.press("1")
    page.locator(f"#desk:not([data-item='{seen}'])").wait_for()
    reader.press("Menu")
    reader.follow("Train & export")
    reader.press("Create export")
    with page.expect_download() as download:
        reader.act(page.get_by_role("link", name="qrels.txt").first)
    exported = Path(download.value.path()).read_text().splitlines()
    seconds = time.monotonic() - began
    print(f"\n{reader.acts} actions, {seconds:.0f} s (serve from an empty folder included)")
    assert len(exported) == 6
    assert reader.acts <= MOST_ACTIONS
    assert seconds <= MOST_SECONDS * slowness()
    context.close()
