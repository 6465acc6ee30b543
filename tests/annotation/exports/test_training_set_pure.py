"""What decides on a training set, without a database: splits, near-duplicates, choices and balance."""

from collections import Counter
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.exports.length_balance.balancing import LENGTHS, balance_pairs, cells_of, measure_spread
from annotation.exports.options import ExportOptions
from annotation.exports.sets.choosing import filter_queries
from annotation.exports.sets.parquet import list_languages
from annotation.exports.sets.rows import SetQuery, SetRow, order_key
from annotation.exports.sets.splitting import split_queries
from corpus.errors import BadInput, BadOption
from corpus.search import near


def row(doc, relevant=False, query="q1", key=1, **values):
    values = {"target_score": float(relevant), "origin": "ensemble", **values}
    document = values.pop("document", int(sha256(doc.encode()).hexdigest()[:8], 16))
    return SetRow("books", query, doc, key, document, 1, int(relevant), values.pop("origin"), relevant, **values)


def query(name, *rows, key=1):
    return SetQuery("books", name, key, list(rows))


# Splits


def plain(number, **values):
    return SetQuery("books", f"q{number}", number, [row(f"d{number}", key=number)], **values)


def halve(queries, share=0.5, seed=0, groups=None, documents=None, **options):
    """The sides of a split, and how many were left out."""
    left = Counter()
    sides = split_queries(
        queries, share, seed, groups=groups or {}, documents=documents or {}, left_out=left, **options
    )
    return sides, left


def test_queries_are_split_in_the_order_of_sha256_of_seed_and_id_and_a_small_set_has_one_on_each_side():
    queries = [plain(n) for n in range(20)]
    order = sorted(queries, key=lambda q: sha256(f"7\0{q.id}".encode()).digest())
    sides, _left = halve(queries, 0.8, 7)
    assert [q.id for q in sides["train"]] == [q.id for q in queries if q in order[:16]]
    assert [q.id for q in sides["dev"]] == [q.id for q in queries if q in order[16:]]
    assert halve(queries, 1, 7)[0] == {"train": queries}
    for share in (0.01, 0.99):
        sides, _left = halve(queries[:3], share)
        assert sides["train"] and sides["dev"]


def test_a_document_of_dev_is_taken_out_of_train():
    queries = [
        query(f"q{n}", row("shared", document=1, key=n), row(f"own{n}", document=9 + n), key=n) for n in range(5)
    ]
    sides, left = halve(queries, 0.6, documents={1: 0, **{9 + n: n + 1 for n in range(5)}})
    assert all(len(q.rows) == 1 for q in sides["train"])
    assert all(len(q.rows) == 2 for q in sides["dev"])
    assert sum(left.values()) == 3


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
words_of = st.lists(st.sampled_from(WORDS), max_size=9)


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 1.0


@given(
    st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=7), min_size=1, max_size=10),
    st.integers(1, 3),
    st.sampled_from([0.4, 0.5, 0.8, 1.0]),
)
def test_texts_are_grouped_by_runs_of_words_and_a_short_text_is_one(texts, size, least):
    def shingles(text):
        runs = [tuple(text[at : at + size]) for at in range(len(text) - size + 1)]
        return set(runs or [tuple(text)])

    groups = near.groups_of({key: " ".join(text) for key, text in enumerate(texts)}, least, size)
    similar = {key: {key} for key in range(len(texts))}
    for a, b in combinations(similar, 2):
        if jaccard(shingles(texts[a]), shingles(texts[b])) >= least:
            joined = similar[a] | similar[b]
            for key in joined:
                similar[key] = joined
    assert {frozenset(k for k in groups if groups[k] == groups[key]) for key in groups} == {
        frozenset(group) for group in similar.values()
    }


@given(
    st.lists(st.tuples(words_of, st.lists(words_of, min_size=1, max_size=3)), min_size=1, max_size=10),
    st.floats(0.05, 0.95),
    st.integers(0, 5),
)
def test_no_query_and_no_near_duplicate_is_on_both_sides(material, share, seed):
    texts = {key: " ".join(words) for key, (words, _) in enumerate(material)}
    documents = {}
    queries = []
    for key, (_, found) in enumerate(material):
        rows = []
        for words in found:
            number = len(documents)
            documents[number] = " ".join(words)
            rows.append(row(f"d{number}", document=number, query=f"q{key}", key=key))
        queries.append(query(f"q{key}", *rows, key=key))
    groups, alike = near.groups_of(texts, 0.6, 1), near.groups_of(documents, 0.6, 1)
    sides = split_queries(queries, share, seed, groups=groups, documents=alike, left_out=Counter())
    for a in sides["train"]:
        for b in sides.get("dev", []):
            assert a.id != b.id
            assert jaccard(set(texts[a.key].split()), set(texts[b.key].split())) < 0.6
            for one in a.rows:
                for other in b.rows:
                    left, right = documents[one.document].split(), documents[other.document].split()
                    assert jaccard(set(left), set(right)) < 0.6


def test_a_sample_of_shingles_finds_copies_too():
    text = " ".join(f"word{n}" for n in range(400))
    shingles = near.Shingles(5, sample=8)
    shingles.add([(1, text), (2, text + " more"), (3, text.replace("word", "other")), (4, "short"), (5, "short")])
    groups = shingles.groups(0.8)
    assert groups[1] == groups[2] != groups[3]
    assert groups[4] == groups[5] != groups[1]

    passage = [f"word{n}" for n in range(20)]
    changed = [*passage[:9], "another", *passage[10:]]
    texts = {1: " ".join(passage), 2: " ".join(changed), 3: " ".join(reversed(passage))}
    groups = near.groups_of(texts, 0.8, near.DOCUMENT_WORDS)
    assert groups[1] == groups[2] != groups[3], "one word changed in a short passage makes a near-duplicate"


def divide(queries, **options):
    sides, left = halve(queries, **options)
    return {side: {one.id for one in found} for side, found in sides.items()}, left


def test_a_synthetic_query_never_enters_dev_unless_asked():
    real, written = [plain(n) for n in range(10)], [plain(n, synthetic=True) for n in range(10, 30)]
    sides, left = divide(real + written)
    assert (len(sides["train"]), len(sides["dev"])) == (25, 5) and not left
    assert sides["dev"] == divide(real)[0]["dev"]
    asked, _ = divide(real + written, synthetic_dev=True)
    assert len(asked["dev"] & {one.id for one in written}) > 0 and len(asked["dev"]) == 15


def test_a_synthetic_query_whose_seed_or_near_duplicate_is_in_dev_is_left_out_and_counted():
    real = [plain(n) for n in range(10)]
    dev = divide(real)[0]["dev"]
    written = [plain(10 + n, synthetic=True, seed=f"q{n}") for n in range(10)]
    sides, left = divide(real + written)
    assert sides["dev"] == dev
    assert {f"q{10 + n}" for n in range(10) if f"q{n}" not in dev} == sides["train"] & {one.id for one in written}
    assert left.total() == len(dev)
    alike, left = divide([*real, plain(40, synthetic=True)], groups={40: 1, int(min(dev)[1:]): 1})
    assert "q40" not in alike["train"] | alike["dev"] and left.total() == 1
    asked, _ = divide(real + written, synthetic_dev=True)
    for side in asked.values():
        assert all((f"q{n}" in side) == (f"q{10 + n}" in side) for n in range(10))


# Choices


def chosen(rows, **options):
    left = Counter()
    kept = filter_queries([query("q1", *rows)], left, **options)
    return [one.doc_id for q in kept for one in q.rows], dict(+left)


def test_rows_are_filtered_by_agreement_negatives_for_each_positive_and_documents_of_a_query():
    # A machine's label needs the votes asked for, and people's labels none.
    rows = [
        row("a", True, yes=5, votes=5),
        row("b", True, yes=3, votes=5),
        row("c", False, yes=1, votes=5),
        row("d", True, yes=1, votes=5, origin="people"),
        row("e", True),
    ]
    assert chosen(rows, agreement=0.8) == (["a", "c", "d"], {"too little agreement": 2})

    # Negatives are limited by the positives of their query, and hard ones come first.
    rows = [row("p", True), *(row(f"n{n}") for n in range(6)), row("hard", rank=12)]
    kept, left = chosen(rows, negatives=2)
    assert {"p", "hard"} < set(kept) and len(kept) == 3
    assert left == {"more negatives than requested": 5}
    assert kept == sorted(kept)
    assert chosen([row("n1"), row("n2")], negatives=3)[0] == []

    # A fixed number of documents leaves room for a negative.
    rows = [*(row(f"p{n}", True) for n in range(4)), row("n")]
    kept, _ = chosen(rows, documents=3)
    assert len(kept) == 3 and "n" in kept
    kept, left = chosen(rows, documents=6)
    assert kept == [] and left == {"queries with fewer documents": 5}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ranks": "5-2"}, "ranks"),
        ({"ranks": "0-2"}, "ranks"),
        ({"format": "csv", "seed": 1}, "seed"),
        ({"format": "debates", "origins": "people"}, "origins"),
        ({"format": "debates", "leave_out_failed": True}, "leave_out_failed"),
        ({"format": "csv", "assessors": "people"}, "assessors"),
        ({"aggregate": "majority", "labels": "people"}, "labels"),
        ({"format": "erank-sft", "balance": True}, "balance"),
        ({"qrels": 1}, "qrels"),
        ({"format": "beir", "qrels": 1, "negatives": 1}, "negatives"),
        ({"format": "beir", "qrels": 1, "split": 0.9}, "split"),
        ({"format": "preferences", "negatives": 3}, "negatives"),
        ({"format": "preferences", "balance": True}, "balance"),
        ({"format": "preferences", "aggregate": "majority"}, "aggregate"),
        ({"format": "preferences", "thresholds": (1,)}, "thresholds"),
        ({"format": "preference-grades", "split": 0.5}, "split"),
        ({"format": "preference-grades", "thresholds": (2, 1)}, "thresholds"),
        ({"format": "qrels", "thresholds": (1,)}, "thresholds"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(options, named):
    with pytest.raises(BadOption) as refused:
        ExportOptions.read({"format": "prism", **options})
    assert [name for name, _sentence in refused.value.problems] == [named]


def test_a_benchmark_keeps_near_duplicates_unless_told_and_a_card_names_the_languages_of_a_share_of_the_queries():
    for name, told, least in (
        ("beir", {}, None), ("beir", {"near_duplicates": "0.9"}, 0.9), ("prism", {}, 0.8),
        ("prism", {"near_duplicates": "0"}, None), ("prism", {"near_duplicates": None}, None),
    ):  # fmt: skip
        assert ExportOptions.read({"format": name, **told}).near == least

    assert list_languages(Counter(en=199, pt=1)) == ["en"]
    assert list_languages(Counter(zh=12, en=188)) == ["en", "zh"]
    assert list_languages(Counter()) == ["en"]


# Balance


def test_balancing_a_skewed_set_reaches_the_aim_and_says_what_it_kept():
    """As a crawl is: most documents short, most scores at the ends (Prism 4.5)."""
    draw = np.random.default_rng(3)
    scores = np.clip(draw.beta(0.6, 0.4, 20_000), 0, 1)
    lengths = np.exp(draw.normal(5.2, 1.6, 20_000)).astype(int)
    kept, found = balance_pairs(scores.tolist(), lengths.tolist(), [order_key(0, str(n)) for n in range(20_000)])
    before, after = found["before"], found["after"]
    assert before["entropy"] < 0.97
    assert after["entropy"] >= 0.99
    assert after["coefficient_of_variation"] < before["coefficient_of_variation"]
    assert sum(map(sum, after["cells"])) == len(kept)
    assert found["share_kept"] == round(len(kept) / 20_000, 6)
    larger = np.minimum(np.bincount(cells_of(scores, lengths), minlength=48), found["cap"] + 1)
    assert measure_spread(larger)["entropy"] < 0.99  # no larger cap would do


def test_cells_have_their_edges_and_entropy_is_that_of_the_paper_where_every_cell_is_filled():
    lengths = [0, 63, 64, 127, 128, 4095, 4096, 10**6]
    assert (cells_of([0.0] * 8, lengths) % 8).tolist() == [0, 0, 1, 1, 2, 6, 7, 7]
    assert (cells_of([0.0, 0.16, 1 / 6, 0.5, 5 / 6, 1.0], [0] * 6) // 8).tolist() == [0, 0, 1, 3, 5, 5]

    even = measure_spread(np.full(48, 10))
    assert [even[key] for key in ("entropy", "entropy_of_all_cells", "coefficient_of_variation")] == [1.0, 1.0, 0.0]
    half = measure_spread(np.array([10] * 24 + [0] * 24))
    assert half["entropy"] == 1.0
    assert half["entropy_of_all_cells"] == round(float(np.log(24) / np.log(48)), 6)


def test_balancing_by_the_entropy_of_the_paper_reaches_the_aim_over_all_cells_or_says_that_it_cannot():
    """The same rows: evened over 47 filled cells they pass for the filled ones, and need a smaller cap for ln 48."""
    rows = [(cell, n) for cell in range(47) for n in range(40 + 30 * (cell % 3))]
    scores = [(cell // 8 + 0.5) / 6 for cell, _ in rows]
    lengths = [(32, *LENGTHS)[cell % 8] for cell, _ in rows]
    places = [order_key(0, str(n)) for n in range(len(rows))]
    _, ours = balance_pairs(scores, lengths, places)
    _, prism = balance_pairs(scores, lengths, places, entropy="prism")
    assert prism["after"]["entropy_of_all_cells"] >= 0.99 > ours["after"]["entropy_of_all_cells"]
    assert prism["cap"] < ours["cap"]
    low = sum(score < 0.5 for score in scores)  # they come first
    with pytest.raises(BadInput, match="only 24 cells"):
        balance_pairs(scores[:low], lengths[:low], places, entropy="prism")


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9_000)), min_size=1, max_size=200), st.integers(0, 3))
def test_balancing_always_reaches_the_aim_and_keeps_every_filled_cell(rows, seed):
    scores, lengths = [score for score, _ in rows], [length for _, length in rows]
    _, found = balance_pairs(scores, lengths, [order_key(seed, str(n)) for n in range(len(rows))])
    assert found["after"]["entropy"] >= 0.99
    filled = np.array(found["before"]["cells"]) > 0
    assert ((np.array(found["after"]["cells"]) > 0) == filled).all()
