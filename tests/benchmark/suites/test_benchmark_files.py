"""Files of the benchmark's pages: CSV is for programs and speaks English to everybody, LaTeX is for the reader."""

import json
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin

import pytest
from django.test import Client

from annotation.models import Membership, Role
from benchmark.suites import groups
from charts.downloads import DownloadTable, Figure
from tests.benchmark_scene import whole_scene
from tests.factories import make_collection, make_member

pytestmark = pytest.mark.django_db
HAN = re.compile(r"[\u4e00-\u9fff]")
ROOTS = ("/c/books/benchmark/", "/suites/")
MANY = 45
"""Files, one of each kind of page."""


def reader(member: Membership, language: str) -> Client:
    client = Client(headers={"accept-language": language})
    client.force_login(member.user)
    return client


def files(client: Client) -> Iterator[str]:
    """Addresses of the files that the pages name: one page of each kind is read, the first of its kind."""
    seen, waiting = set(), [*ROOTS]
    while waiting:
        path = waiting.pop()
        response = client.get(path)
        if "html" not in response["Content-Type"]:
            continue
        for link in dict.fromkeys(re.findall(r'href="([^"#]+)', response.content.decode())):
            address = urljoin(path, unescape(link))
            kind = re.sub(r"\d+", "N", address)
            if address.startswith(ROOTS) and kind not in seen:
                seen.add(kind)
                if "as=" in link:
                    yield address
                else:
                    waiting.append(address)


@pytest.mark.slow
def test_csv_is_the_same_for_every_reader_and_latex_speaks_their_language():
    collection, charlie = whole_scene()
    stones = make_collection("stones")
    make_member(stones, "charlie", Role.ADMIN)
    groups.make_suite(name="both", collections=[collection, stones])
    chinese, english = reader(charlie, "zh-CN"), reader(charlie, "en")
    count = 0
    for address in files(chinese):
        ours, theirs = (client.get(address) for client in (chinese, english))
        assert ours.status_code == theirs.status_code == 200, address
        if address.endswith(("as=csv", "as=json")):
            count += address.endswith("as=csv")
            assert ours.content == theirs.content, address
            assert not HAN.search(ours.content.decode()), address
            assert ours["Content-Language"] == "en"
        elif address.endswith("as=tex"):
            assert HAN.search(ours.content.decode().partition(r"\midrule")[0].partition(r"\toprule")[2]), address
            assert not HAN.search(theirs.content.decode()), address
    assert count > MANY


def test_a_blank_figure_is_an_empty_cell_of_the_csv_and_of_latex_and_null_in_json():
    rows = (("bm25", Figure(0.5, 0.25)), ("=cmd", Figure(None)), ("a & b", Figure(-0.25)))
    table = DownloadTable("t", "A & B", ("system", "nDCG"), rows, best=frozenset([1]))
    assert table.csv() == "system,nDCG,nDCG change\nbm25,0.5,0.25\n'=cmd,,\na & b,-0.25,\n"
    told = json.loads(table.json())
    assert (told["table"], told["title"], told["columns"]) == ("t", "A & B", ["system", "nDCG", "nDCG change"])
    assert told["rows"] == [["bm25", 0.5, 0.25], ["=cmd", None, None], ["a & b", -0.25, None]]
    latex = table.latex()
    assert r"\caption{A \& B}" in latex and r"=cmd &  \\" in latex and r"a \& b & $-$0.250 \\" in latex


def test_whoever_chose_a_language_for_good_gets_english_csv_too():
    charlie = whole_scene()[1]
    charlie.user.language = "zh-hans"
    charlie.user.save(update_fields=["language"])
    client, address = reader(charlie, "en"), "/c/books/benchmark/hole-filling/?table=safety&as="
    header = client.get(f"{address}csv").text.splitlines()[0]
    assert header.split(",") == ["system", "Judged@10", "nDCG@10", "at least", "at most", "undecided orders"]
    assert "系统" in client.get(f"{address}tex").text
