"""BM25: the scores of the published formula, ties by document id, an index that follows its documents."""

import math

import pytest

from corpus import bm25
from corpus.bm25 import Index, index_for
from corpus.text import words
from tests.factories import make_collection, make_document

TEXTS = {40: "the cat sat on the mat", 30: "a cat and a dog", 20: "the cat sat on the mat", 10: "dogs bark"}


def by_hand(query, key):
    """Robertson's BM25 with Lucene's idf, k1 = 1.5, b = 0.75."""
    tokens = {other: words(text) for other, text in TEXTS.items()}
    average = sum(map(len, tokens.values())) / len(tokens)
    total = 0.0
    for word in words(query):
        df = sum(word in found for found in tokens.values())
        tf = tokens[key].count(word)
        idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
        total += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(tokens[key]) / average))
    return total


def test_scores_are_those_of_the_formula():
    index = Index.build(TEXTS.items())
    for key in TEXTS:
        assert index.score("cat on the cat", key) == pytest.approx(by_hand("cat on the cat", key), rel=1e-5)
    assert dict(index.search("cat dog", 10)) == pytest.approx(
        {k: by_hand("cat dog", k) for k in (40, 30, 20)}, rel=1e-5
    )


def test_equal_scores_keep_the_order_that_the_index_was_built_in():
    index = Index.build(TEXTS.items())
    assert [key for key, _ in index.search("mat", 10)] == [40, 20]
    assert [key for key, _ in index.search("mat", 1)] == [40]


def test_a_query_without_known_words_finds_nothing():
    index = Index.build(TEXTS.items())
    assert index.search("zebra", 5) == [] and index.search("", 5) == []
    assert index.score("zebra", 40) == 0.0 and index.score("cat", 99) == 0.0
    assert Index.build([]).search("cat", 5) == [] and len(Index.build([])) == 0


def test_documents_without_words_are_no_matter():
    index = Index.build([(2, ""), (1, "cat")])
    assert [key for key, _ in index.search("cat", 5)] == [1]
    assert Index.build([(1, ""), (2, " ")]).search("cat", 5) == []


def test_an_index_from_disk_is_the_same(tmp_path):
    index = Index.build(TEXTS.items())
    index.save(tmp_path / "one")
    loaded = Index.load(tmp_path / "one")
    assert loaded.search("the cat", 9) == index.search("the cat", 9)
    Index.build([]).save(tmp_path / "none")
    assert len(Index.load(tmp_path / "none")) == 0


@pytest.mark.django_db
def test_ties_are_by_document_id_descending_and_new_documents_are_found(settings, tmp_path):
    settings.VAR = tmp_path
    collection = make_collection()
    first = make_document(collection, "a cat", external_id="d1")
    second = make_document(collection, "a cat", external_id="d2")
    assert [key for key, _ in index_for(collection).search("cat", 5)] == [second.pk, first.pk]
    third = make_document(collection, "another", title="Cat", external_id="d3")
    assert third.pk in dict(index_for(collection.pk).search("cat", 5))
    assert len(index_for(collection, max_age=60)) == 3


@pytest.mark.django_db(transaction=True)
def test_the_index_is_kept_in_var_by_its_content(settings, tmp_path):
    settings.VAR = tmp_path
    collection = make_collection()
    make_document(collection, "a cat")
    index_for(collection)
    kept = tmp_path / "indexes" / f"bm25-{bm25.content_hash(collection.pk)}"
    assert (kept / "keys.npy").exists()
    bm25._recent.clear()
    assert len(index_for(collection)) == 1
    bm25.forget(collection)
    assert not kept.exists()
