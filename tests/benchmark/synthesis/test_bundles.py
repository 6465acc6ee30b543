"""Bundles: seeded draws, near-duplicate negatives, and splits that share nothing. Pure."""

from benchmark.synthesis.bundles import draw_personas, draw_seeds, find_near_copies, query_id_of, split_bundles
from benchmark.synthesis.seeds import bundled_personas
from judges.prompts.answers.synthesis import normalize

WORDS = ["river", "stone", "cloud", "lamp", "bridge", "wheel", "garden", "paper", "window", "bottle", "ladder", "oven"]


def bundle(number, *, seed="", query="", text=""):
    own = " ".join(f"{word}{number}" for word in WORDS)
    return {
        "query_id": query_id_of(f"q{number}", own),
        "query": query or own,
        "positives": [{"text": text or f"positive {own}"}],
        "negatives": [{"text": f"negative about {own} elsewhere"}],
        "seed": {"query_id": seed or f"q{number}"},
    }


def test_personas_and_seeds_are_drawn_by_the_seed_and_never_by_their_order():
    ids = [f"q{number}" for number in range(100)]
    drawn = draw_seeds(ids, 7, 20)
    assert len(drawn) == 20 and drawn == [one for one in ids if one in set(drawn)]
    assert sorted(draw_seeds(ids[::-1], 7, 20)) == sorted(drawn) != sorted(draw_seeds(ids, 8, 20))
    assert set(draw_seeds(ids, 7, 10)) < set(drawn)
    assert draw_seeds(ids, 7, None) == ids
    shown = {tuple(draw_personas(bundled_personas(), 0, one)) for one in ids}
    assert len(shown) > 90 and all(len(set(one)) == 3 for one in shown)


def test_the_bundled_personas_are_different_and_short():
    found = bundled_personas()
    assert len({normalize(one) for one in found}) == len(found) >= 30
    assert all(5 <= len(one.split()) <= 25 for one in found)


def test_a_negative_is_a_copy_where_it_shares_four_fifths_of_its_pairs_of_words_with_a_positive():
    positive = " ".join(WORDS)
    assert find_near_copies([positive], [positive.upper(), "something else entirely"]) == {0}
    assert find_near_copies([positive], [f"{positive} and more"]) == {0}  # 11 of 13 pairs of words
    assert find_near_copies([positive], [f"{positive} and a good deal more"]) == set()  # 11 of 16
    assert find_near_copies(["one text", positive], ["other", positive]) == {1}


def test_no_bundle_and_nothing_like_it_stands_on_both_sides():
    bundles = [bundle(number) for number in range(40)]
    assert list(split_bundles(bundles, 0.0, 0)) == ["train"], "without a share nothing is measured on them"
    bundles += [bundle(40, seed="q1"), bundle(41, query=bundles[2]["query"] + " too")]
    bundles += [bundle(42, text=bundles[3]["negatives"][0]["text"]), bundle(43, seed="q40")]
    together = [(1, 40), (2, 41), (3, 42)]
    for seed in range(10):
        sides = split_bundles(bundles, 0.25, seed)
        ids = {side: {one["query_id"] for one in rows} for side, rows in sides.items()}
        assert not ids["train"] & ids["dev"] and len(ids["train"]) + len(ids["dev"]) == 44
        assert 8 <= len(ids["dev"]) <= 11
        for one, other in together:
            assert (bundles[one]["query_id"] in ids["dev"]) == (bundles[other]["query_id"] in ids["dev"])
        assert split_bundles(bundles, 0.25, seed) == sides
