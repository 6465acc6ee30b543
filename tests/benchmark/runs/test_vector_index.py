"""Above some number of documents vectors are searched by an index whose recall is measured (issue 17)."""

import shutil
from collections import namedtuple

import numpy as np
import pytest
from django.urls import reverse

from annotation.models import Role
from benchmark.models import Run
from benchmark.runs import rankings, vector_index
from benchmark.runs.vector_index import NOTHING, ExactSearch, IndexedSearch, keep_facts, open_search
from benchmark.runs.vectors import Store, text_digest
from corpus.errors import BadInput
from judges.records import Judge
from tests.engine_parts import make_judge
from tests.factories import client_of, make_collection, make_document, make_member, make_query
from tests.rankings import start_run, work_on

pytestmark = pytest.mark.django_db(transaction=True)
JUDGE = Judge("vectors", "embed-endpoint", "m", "http://127.0.0.1:1/v1", id=1)
DOCUMENTS, SIZE = 4_000, 16


def never() -> bool:
    return False


def quiet(*_: object) -> None:
    """Progress that nobody watches."""


@pytest.fixture
def birds():
    return make_collection("birds")


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Vectors around 60 centres, as texts about 60 things would have them."""
    monkeypatch.setattr(vector_index, "LARGEST_EXACT", 1_000)
    chance = np.random.default_rng(7)
    centres = chance.normal(size=(60, SIZE))
    rows = centres[chance.integers(0, 60, DOCUMENTS)] + 0.4 * chance.normal(size=(DOCUMENTS, SIZE))
    kept = Store(tmp_path / "vectors", JUDGE)
    kept.add([text_digest(str(number)) for number in range(DOCUMENTS)], rows.astype(np.float32))
    return kept


def queries_near(store: Store, number: int):
    chance = np.random.default_rng(11)
    chosen = np.sort(chance.choice(DOCUMENTS, number, replace=False))
    return (store.rows(chosen) + 0.1 * chance.normal(size=(number, SIZE))).astype(np.float32)


def places_of(store, number=DOCUMENTS):
    # In another order than they came in: documents are not stored in the order of their ids.
    return store.find([text_digest(str(one)) for one in reversed(range(number))])


def test_few_documents_are_searched_exactly_and_many_by_an_index(birds, store):
    few = open_search(store, places_of(store, 1_000), birds, None, quiet, never)
    assert isinstance(few, ExactSearch) and few.facts() == {}
    told = []
    many = open_search(store, places_of(store), birds, None, lambda *said: told.append(said), never)
    assert isinstance(many, IndexedSearch)
    assert told[-1][:2] == (DOCUMENTS, DOCUMENTS)
    queries, depths = queries_near(store, 80), [10] * 79 + [25]
    found, exact = many.search(queries, depths), many.exact.search(queries, depths)
    assert [len(places) for places, _scores in found] == depths
    same = [np.isin(wanted[0], got[0]).mean() for wanted, got in zip(exact, found, strict=True)]
    assert np.mean(same) > 0.97
    for (places, scores), query in zip(found, queries, strict=True):
        assert (np.diff(scores) <= 0).all()
        assert np.allclose(scores, store.rows(places_of(store)[places]) @ query, atol=1e-5), "the scores are cosines"
    facts = many.facts()
    assert facts["recall"] >= vector_index.RECALL and facts["queries"] == 50 and facts["depth"] == 10
    assert (facts["documents"], facts["lists"]) == (DOCUMENTS, DOCUMENTS // vector_index.PER_LIST)
    assert 0 < facts["probed"] < facts["lists"] and many.measuring_s > 0


def test_more_lists_are_searched_until_the_recall_is_as_wanted(birds, store, monkeypatch):
    monkeypatch.setattr(vector_index, "FIRST_PROBED", 1)
    monkeypatch.setattr(vector_index, "RECALL", 1.0)
    search = open_search(store, places_of(store), birds, None, quiet, never)
    queries = queries_near(store, 50)
    search.search(queries[:20], [100] * 20)
    first = search.probed
    assert first > 1 and search.facts()["queries"] == 20
    search.search(queries[20:], [100] * 30)
    assert search.probed >= first and search.facts()["queries"] == 50
    again = open_search(store, places_of(store), birds, search.probed, quiet, never)
    assert again.probed == search.probed, "a run that goes on begins with what it took before"


def test_an_index_is_built_once_for_the_same_documents_and_old_ones_go(birds, store):
    here = store.folder / ".indexes"
    open_search(store, places_of(store), birds, None, quiet, never)
    (made,) = here.glob("*-*")
    when = (made / "lists.index").stat().st_mtime_ns
    assert sorted(one.name for one in made.iterdir()) == ["lists.index", "lists.ivfdata"]
    open_search(store, places_of(store), birds, None, quiet, lambda: pytest.fail("built again"))
    assert (made / "lists.index").stat().st_mtime_ns == when
    (here / "999999999-of-a-collection-that-is-gone").mkdir()
    for number in (3_000, 2_000):
        open_search(store, places_of(store, number), birds, None, quiet, never)
    assert len(list(here.glob("*-*"))) == vector_index.INDEXES_KEPT and not made.exists()


def test_a_build_that_is_stopped_or_has_no_room_leaves_nothing(birds, store, monkeypatch):
    assert open_search(store, places_of(store), birds, None, quiet, lambda: True) is None
    assert not [one for one in (store.folder / ".indexes").iterdir() if one.is_dir()]
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(0, 0, 9))
    with pytest.raises(BadInput, match="GB on the disk"):
        open_search(store, places_of(store), birds, None, quiet, never)


def test_the_index_is_filled_in_parts_that_are_merged(birds, store, monkeypatch):
    monkeypatch.setattr(vector_index, "HELD_BYTES", 1_500 * SIZE * 4)
    monkeypatch.setattr(vector_index, "ROWS", 700)
    search = open_search(store, places_of(store), birds, None, quiet, never)
    search.probed = search.lists
    queries = queries_near(store, 5)
    for wanted, got in zip(search.exact.search(queries, [50] * 5), search.search(queries, [50] * 5), strict=True):
        assert np.allclose(wanted[1], got[1], atol=1e-5), "all lists together hold all vectors"


def test_a_run_keeps_what_was_measured_and_its_page_shows_it(model_server, settings, tmp_path, monkeypatch):
    settings.VAR = tmp_path
    wings = make_collection("wings")
    for number in range(60):
        make_document(wings, f"Text {number} about wings.", external_id=f"e{number:02}")
    for number in range(3):
        make_query(wings, f"Which text is {number}?", external_id=f"q{number}")
    make_judge(model_server, "vectors", provider="embed-endpoint")

    def make(name: str) -> Run:
        run = work_on(start_run(wings, "dense", name, judge="vectors", depth=10))
        assert (run.state, run.error) == ("ready", "")
        return run

    exact = make("exact")
    assert exact.search == {}
    monkeypatch.setattr(vector_index, "LARGEST_EXACT", 50)
    indexed = make("indexed")
    facts = indexed.search
    assert (facts["documents"], facts["queries"], facts["depth"], facts["recall"]) == (60, 3, 10, 1.0)
    assert rankings.as_run(indexed).keys() == rankings.as_run(exact).keys()
    client = client_of(make_member(wings, "charlie", Role.ADMIN))
    page = client.get(reverse("system", args=["wings", indexed.pk])).text
    assert "exact search: 1.0000, measured" in " ".join(page.split())
    assert "exact search" not in client.get(reverse("system", args=["wings", exact.pk])).text
    keep_facts(indexed, NOTHING)
    indexed.refresh_from_db()
    assert indexed.search == facts, "a search that compares everything says nothing"
