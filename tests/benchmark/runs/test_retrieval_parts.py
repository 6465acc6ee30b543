"""Parts of runs by models: exact search by blocks, vectors in VAR, rules of rewriting, what endpoints answer."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.runs.expansion import combine_texts
from benchmark.runs.vectors import Store, nearest_vectors, text_digest
from corpus.errors import BadInput
from judges.domain.verdicts import Unparsed
from judges.errors import ProviderError
from judges.panels import judges_file
from judges.prompts.answers import retrieval as answers
from judges.prompts.answers.retrieval import pack_vectors, vectors_of
from judges.providers.replies import parse_body
from judges.records import Body, Judge, Turn

JUDGE = Judge("vectors", "embed-endpoint", "m", "http://127.0.0.1:1/v1", id=1)


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**31))
def test_search_by_blocks_finds_what_sorting_everything_finds(documents, depth, block, seed):
    chance = np.random.default_rng(seed)
    rows = chance.integers(-2, 3, (documents, 3)).astype(np.float32)  # many equal scores
    queries = chance.integers(-2, 3, (2, 3)).astype(np.float32)
    found = nearest_vectors(queries, documents, lambda begin, end: rows[begin:end], [depth, depth + 1], block)
    for query, (places, scores), limit in zip(queries, found, [depth, depth + 1], strict=True):
        everything = rows @ query
        expected = np.argsort(-everything, kind="stable")[:limit]
        assert places.tolist() == expected.tolist()
        assert scores.tolist() == everything[expected].tolist()


def test_mugi_repeats_the_query_by_the_length_of_its_references():
    # 9 + 8 words; the query has 2: 17 // (2 x 4) = 2.
    texts = ["one two three four five six seven eight nine", "one two three four five six seven eight"]
    assert combine_texts("mugi", "wing lift", texts) == "\n".join(["wing lift", "wing lift", *texts])
    assert combine_texts("mugi", "wing lift", ["short"]) == "wing lift\nshort"
    assert combine_texts("mugi", "", texts) == "\n".join(["", *texts])
    assert combine_texts("hyde", "q", ["a", "b"]) == "a\nb"
    assert combine_texts("query2doc", "q", ["a"]) == "q\nq\nq\nq\nq\na"


def near(rows, expected):
    """Vectors are kept at length 1: only their directions are compared."""
    expected = np.array(expected, dtype=np.float64)
    return np.allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_vectors_are_found_again_by_their_text_and_kept_once(tmp_path):
    store = Store(tmp_path, JUDGE)
    store.add([text_digest("a"), text_digest("b")], np.array([[1, 2], [3, 4]], dtype=np.float32))
    other = Store(tmp_path, JUDGE)
    other.add([text_digest("b"), text_digest("c")], np.array([[9, 9], [5, 6]], dtype=np.float32))
    assert len(store) == 2
    store.add([text_digest("c"), text_digest("d")], np.array([[9, 9], [7, 8]], dtype=np.float32))
    places = store.find(map(text_digest, ("d", "a", "c", "b", "x")))
    assert places.tolist() == [3, 0, 2, 1, -1]
    assert near(store.rows(places[:4]), [[7, 8], [1, 2], [5, 6], [3, 4]])
    assert near(store.rows(np.array([1, 2, 3])), [[3, 4], [5, 6], [7, 8]])
    assert near(Store(tmp_path, JUDGE).rows(np.array([3])), [[7, 8]])


@pytest.mark.parametrize("torn", ["vectors", "hashes"])
def test_what_a_kill_left_half_is_cut_away(tmp_path, torn):
    store = Store(tmp_path, JUDGE)
    store.add([text_digest("a")], np.array([[1, 2]], dtype=np.float32))
    with (store.folder / torn).open("ab") as file:
        file.write(b"12345")
    again = Store(tmp_path, JUDGE)
    assert len(again) == 1 and near(again.rows(np.array([0])), [[1, 2]])
    again.add([text_digest("b")], np.array([[3, 4]], dtype=np.float32))
    assert near(Store(tmp_path, JUDGE).rows(np.array([0, 1])), [[1, 2], [3, 4]])


def test_another_model_has_vectors_of_its_own_and_an_exchanged_one_is_refused(tmp_path):
    store = Store(tmp_path, JUDGE)
    store.add([text_digest("a")], np.array([[1, 2]], dtype=np.float32))
    other = Judge("vectors", "embed-endpoint", "n", JUDGE.base_url, id=2)
    assert len(Store(tmp_path, other)) == 0
    with pytest.raises(BadInput, match="3 numbers and returned 2"):
        store.add([text_digest("b")], np.array([[1, 2, 3]], dtype=np.float32))


def embedding(*vectors, order=None):
    places = order or range(len(vectors))
    data = [{"index": place, "embedding": vector} for place, vector in zip(places, vectors, strict=True)]
    return {"data": data, "usage": {"prompt_tokens": 7}, "model": "m"}


def reply(body, provider="embed-endpoint"):
    from judges.providers import load_provider

    found = load_provider(provider)(JUDGE)
    assert parse_body(json.dumps(body))
    return found.meaning(Body(200, json.dumps(body)), JUDGE)


def test_vectors_and_scores_come_in_any_order_and_their_place_decides():
    packed = base64.b64encode(np.array([3, 4], dtype="<f4").tobytes()).decode()
    found = reply(embedding(packed, [1, 2], order=[1, 0]))
    assert vectors_of(Turn(1, found.text), 2).tolist() == [[1, 2], [3, 4]]
    assert found.usage.input == 7
    listed = [{"index": 1, "relevance_score": 7.5}, {"index": 0, "relevance_score": -3}]
    found = reply({"results": listed, "usage": {"total_tokens": 5}}, "rerank-endpoint")
    assert answers.scores_of(answers.parse_answer("rank", found.text, 2)) == [-3.0, 7.5]
    assert found.usage.input == 5
    with pytest.raises(Unparsed, match="vector for each"):
        vectors_of(Turn(1, pack_vectors([[1.0, 2.0]])), 2)
    for role, text in (("rank", '{"0": 0.5}'), ("rewrite", '{"passage": " "}'), ("reason", '{"passage": "a"}')):
        with pytest.raises(Unparsed):
            answers.parse_answer(role, text, 2)


@pytest.mark.parametrize(
    "body",
    [
        embedding(),
        embedding([1, 2], [3]),
        embedding([1, 2], [3, 4], order=[0, 0]),
        embedding([1, 2], [3, 4], order=[0, 2]),
        embedding([1, None]),
        embedding([]),
        embedding("no base64"),
        embedding(base64.b64encode(np.array([np.nan], dtype="<f4").tobytes()).decode()),
        {"data": "none"},
    ],
)
def test_what_is_not_one_vector_for_each_place_is_no_answer(body):
    with pytest.raises(ProviderError, match="provider's format"):
        reply(body)


@pytest.mark.parametrize(
    "results", [[(0, 0.5), (0, 0.4)], [(0, 0.5), (1, None)], [(0, 0.5), ("1", 0.4)], [(0, 0.5), (1, float("inf"))]]
)
def test_a_ranking_with_a_place_twice_or_a_score_that_is_none_is_no_answer(results):
    listed = [{"index": place, "relevance_score": score} for place, score in results]
    with pytest.raises(ProviderError, match="provider's format"):
        reply({"results": listed}, "rerank-endpoint")


VECTORS = '[[judge]]\nname = "v"\nprovider = "embed-endpoint"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (VECTORS.rpartition("base_url")[0], "base_url is missing"),
        (f"{VECTORS}temperature = 0.5\n", r"temperature .*embed-endpoint"),
    ],
)
def test_an_embedder_of_a_judges_file_has_an_address_and_no_temperature(text, problem):
    with pytest.raises(BadInput, match=problem):
        judges_file.parse(text)
