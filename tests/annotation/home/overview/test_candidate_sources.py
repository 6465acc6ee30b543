"""The Overview says what each search found alone; a second search finds what the first is blind to."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.data.imports.candidate_sources import read_sources
from annotation.models import Role
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Pair
from corpus.search import static_embeddings
from tests.factories import client_of, make_member
from tests.rankings import make_texts

needs_static = pytest.mark.skipif(
    not static_embeddings.is_available(), reason="wordllama has no wheel for this machine: static embeddings not run"
)


@pytest.fixture
def texts(db: None, settings, tmp_path: Path) -> Collection:
    settings.VAR = tmp_path
    documents = {
        "d1": "The physician examined the sick child.",
        "d2": "The stock market fell sharply on Monday.",
        "d3": "Kids bake bread with flour and yeast.",
    }
    collection = make_texts("texts", documents, {"q1": "doctors treating ill kids", "q2": "the stock market dropped"})
    make_member(collection, "charlie", Role.ADMIN)
    return collection


def page_text(collection: Collection) -> str:
    charlie = client_of(collection.memberships.get(user__username="charlie"))
    return " ".join(charlie.get(f"/c/{collection.name}/").content.decode().split())


@needs_static
def test_the_overview_says_what_each_search_found_alone(texts: Collection, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"query_id": "q2", "doc_id": "d3"}\n{"query_id": "q2", "doc_id": "d2"}\n')
    report = import_collection("texts", ImportFiles(pairs=pairs, options=ImportOptions(bm25=1, static=1)))
    assert report["sources"] == {"files": 1, "bm25": 1, "static": 1, "bm25+static": 1} == read_sources(texts)
    assert sum(report["sources"].values()) == report["pairs"] == Pair.objects.count()
    page = page_text(texts)
    for sentence in (
        "1 pair found by BM25 alone",
        "1 pair found by static embeddings alone",
        "1 pair found by BM25 + static embeddings",
        "1 pair found by files of pairs or grades alone",
    ):
        assert sentence in page
    assert "this one search" not in page


def test_a_pool_of_one_search_says_so_and_an_import_of_texts_changes_nothing(texts: Collection) -> None:
    out = StringIO()
    call_command("import_collection", "texts", bm25=1, stdout=out)
    assert read_sources(texts) == {"bm25": 2} and "Candidates found" not in out.getvalue()
    assert "What this one search cannot find is not among the candidates." in page_text(texts)
    import_collection("texts", ImportFiles(options=ImportOptions(bm25=2), dry_run=True))
    import_collection("texts", ImportFiles())
    assert read_sources(texts) == {"bm25": 2}
