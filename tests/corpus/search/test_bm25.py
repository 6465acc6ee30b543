"""BM25: the scores of the published formula, ties by document id, an index that follows its documents."""

import math
from random import Random

import bm25s
import numpy as np
import pytest
from bm25s.tokenization import Tokenized

from corpus.search import bm25
from corpus.search.bm25 import Index, index_for
from corpus.search.text import tokenize_text
from tests.factories import make_collection, make_document

TEXTS = {40: "the cat sat on the mat", 30: "a cat and a dog", 20: "the cat sat on the mat", 10: "dogs bark"}


def by_hand(query, key):
    """Robertson's BM25 with Lucene's idf, k1 = 1.5, b = 0.75."""
    tokens = {other: tokenize_text(text) for other, text in TEXTS.items()}
    average = sum(map(len, tokens.values())) / len(tokens)
    total = 0.0
    for word in tokenize_text(query):
        df = sum(word in found for found in tokens.values())
        tf = tokens[key].count(word)
        idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
        total += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(tokens[key]) / average))
    return total


def test_scores_are_those_of_the_formula_and_equal_ones_keep_the_order_that_the_index_was_built_in():
    index = Index.build(TEXTS.items())
    for key in TEXTS:
        assert index.score("cat on the cat", key) == pytest.approx(by_hand("cat on the cat", key), rel=1e-5)
    expected = {key: by_hand("cat dog", key) for key in (40, 30, 20)}
    assert dict(index.search("cat dog", 10)) == pytest.approx(expected, rel=1e-5)
    assert [key for key, _ in index.search("mat", 10)] == [40, 20]
    assert [key for key, _ in index.search("mat", 1)] == [40]


def test_a_query_without_known_words_finds_nothing():
    index = Index.build(TEXTS.items())
    assert index.search("zebra", 5) == [] and index.search("", 5) == []
    assert index.score("zebra", 40) == 0.0 and index.score("cat", 99) == 0.0
    assert Index.build([]).search("cat", 5) == [] and len(Index.build([])) == 0
    assert Index.build([(1, ""), (2, " ")]).search("cat", 5) == []
    assert [key for key, _ in Index.build([(2, ""), (1, "cat")]).search("cat", 5)] == [1]


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


def random_texts(random, number, length, words):
    return [" ".join(f"w{int(random.paretovariate(0.7)) % words}" for _ in range(length())) for _ in range(number)]


def test_the_matrix_is_that_of_bm25s_over_lists_to_the_last_bit():
    """Documents of any length, empty ones too; other parameters as well. Indexes kept from before are equal to it."""
    random = Random(3)
    texts = random_texts(random, 80, lambda: random.randrange(40), 60)
    texts[7] = ""
    for k1, b in ((1.5, 0.75), (0.9, 0.4)):
        index = Index.build(enumerate(texts), k1, b)
        theirs = bm25s.BM25(k1=k1, b=b, method="lucene")
        vocabulary: dict[str, int] = {}
        ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in tokenize_text(text)] for text in texts]
        theirs.index(Tokenized(ids=ids, vocab=vocabulary), create_empty_token=False, show_progress=False)
        for part in ("data", "indices", "indptr"):
            assert np.array_equal(index._scorer.scores[part], theirs.scores[part]), part
        assert index._scorer.vocab_dict == theirs.vocab_dict


def test_a_search_finds_what_bm25s_retrieves():
    """Documents and scores both, but for the order among equals, where bm25s has none."""
    random = Random(5)
    texts = random_texts(random, 300, lambda: 30, 90)
    index = Index.build(enumerate(texts))
    for query in ("w1 w5 w17", "w2", "w40 w41 w42 w40"):
        found = index.search(query, 20)
        rows, scores = index._scorer.retrieve([tokenize_text(query)], k=20, show_progress=False)
        assert [score for _key, score in found] == scores[0].tolist()
        best = {key for key, score in found if score > found[-1][1]}
        assert best <= set(rows[0].tolist())


def test_an_index_with_other_parameters_is_another_one(settings, tmp_path, transactional_db):
    settings.VAR = tmp_path
    collection = make_collection("books")
    make_document(collection, "the cat sat on the mat, and the cat slept", external_id="a")
    make_document(collection, "a dog", external_id="b")
    usual, other = index_for(collection), index_for(collection, k1=0.9, b=0.4)
    assert usual.search("cat", 1)[0][1] != other.search("cat", 1)[0][1]
    folders = {path.name for path in (tmp_path / "indexes").iterdir()}
    assert len(folders) == 2 and f"bm25-{bm25.content_hash(collection.pk)}" in folders
    bm25._recent.clear()
    assert index_for(collection, k1=0.9, b=0.4).search("cat", 1) == other.search("cat", 1)
    bm25.delete_indexes(collection)
    assert not list((tmp_path / "indexes").iterdir()) and not bm25._recent


def test_an_index_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    index = Index.build(TEXTS.items())

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index._scorer, "save", full)
    with pytest.raises(OSError, match="No space left"):
        index.save(tmp_path / "one")
    assert not list(tmp_path.iterdir())
