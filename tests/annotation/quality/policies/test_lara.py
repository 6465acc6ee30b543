"""LARA: who is handed to people, what the fit may see, and a plain scikit-learn script with the same numbers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from annotation.quality.policies.lara import batch_of, budget_of, calibrate_beliefs, most_uncertain, run_shares
from judges.models import Campaign, Work
from tests.annotation.quality.policies.policies_scene import end
from tests.called import call
from tests.evidence import make_assessor, make_attempt, make_campaign, make_judge, make_judgment
from tests.factories import make_collection, make_pair


def sure_of_itself(pairs: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """P(yes), P(no) of a judge that says yes too often, and the truth: relevant where it is surer than 0.7."""
    draw = np.random.default_rng(seed)
    yes = draw.beta(2, 1.2, pairs)
    no = (1 - yes) * draw.uniform(0.9, 1.0, pairs)  # some probability goes to other tokens
    truth = (yes + draw.normal(0, 0.12, pairs) > 0.7).astype(int)
    return np.column_stack([yes, no]), truth


def plain_script(beliefs: np.ndarray, truth: np.ndarray, share: float) -> tuple[list[int], np.ndarray]:
    """The same by scikit-learn alone, written without our code: pairs asked, in order, and the final labels."""
    asked: list[int] = []
    budget, batch = round(share * len(beliefs)), -(-len(beliefs) // 100)
    while True:
        if len({int(truth[place]) for place in asked}) == 2:
            p = LogisticRegression().fit(beliefs[asked], truth[asked]).predict_proba(beliefs)[:, 1]
        else:
            p = beliefs[:, 0] / (beliefs[:, 0] + beliefs[:, 1])
        if len(asked) >= budget:
            break
        order = sorted((abs(p[place] - 0.5), place) for place in range(len(beliefs)) if place not in asked)
        asked += [place for _, place in order[: min(batch, budget - len(asked))]]
    return asked, np.array([truth[i] if i in set(asked) else int(p[i] >= 0.5) for i in range(len(beliefs))])


@pytest.mark.parametrize("share", [0.035, 0.125, 0.25, 0.5])
def test_a_plain_scikit_learn_script_hands_over_the_same_pairs_and_ends_with_the_same_labels(share):
    beliefs, truth = sure_of_itself(400)
    result = run_shares(beliefs, lambda places: truth[places], [share])[0]
    asked, labels = plain_script(beliefs, truth, share)
    assert result.people_pairs.tolist() == asked
    assert result.label.tolist() == labels.tolist()


def test_no_label_of_a_pair_that_people_did_not_get_reaches_the_fit():
    beliefs, truth = sure_of_itself(300)
    handed: list[int] = []

    def people(places: np.ndarray) -> np.ndarray:
        assert not set(places.tolist()) & set(handed), "nobody is asked twice"
        handed.extend(places.tolist())
        return truth[places]

    result = run_shares(beliefs, people, [0.125])[0]
    poisoned = np.where(np.isin(np.arange(300), handed), truth, 1 - truth)
    again = run_shares(beliefs, lambda places: poisoned[places], [0.125])[0]
    assert np.array_equal(again.probability, result.probability), "labels of the other pairs change nothing"


def test_a_share_is_spent_to_the_pair_and_the_rest_takes_the_calibrated_label():
    assert [budget_of(200, share) for share in (0.035, 0.125, 0.25, 0.5, 1.0)] == [7, 25, 50, 100, 200]
    assert [batch_of(n) for n in (3, 100, 101, 1000)] == [1, 1, 2, 10]
    beliefs, truth = sure_of_itself(200)
    result = run_shares(beliefs, lambda places: truth[places], [0.25])[0]
    assert len(result.people_pairs) == 50 == len(set(result.people_pairs.tolist()))
    assert result.own.sum() == 150
    assert np.array_equal(result.label[result.people_pairs], truth[result.people_pairs])
    assert np.array_equal(result.label[result.own], (result.probability[result.own] >= 0.5).astype(int))


@pytest.mark.slow
def test_one_pass_over_all_presets_gives_what_each_gives_alone():
    beliefs, truth = sure_of_itself(230)
    shares = [0.5, 0.035, 0.25, 0.125, 0.0]
    for share, one in zip(shares, run_shares(beliefs, lambda places: truth[places], shares), strict=True):
        alone = run_shares(beliefs, lambda places: truth[places], [share])[0]
        assert (
            one.people_pairs.tolist() == alone.people_pairs.tolist() and one.label.tolist() == alone.label.tolist()
        ), share
        assert np.array_equal(one.probability, alone.probability)


def test_calibration_corrects_a_judge_that_says_yes_too_often():
    beliefs, truth = sure_of_itself(2_000)
    raw = (beliefs[:, 0] > beliefs[:, 1]).astype(int)
    result = run_shares(beliefs, lambda places: truth[places], [0.125])[0]
    own = result.own
    assert (result.label[own] == truth[own]).mean() > (raw[own] == truth[own]).mean() + 0.05

    # Before both labels were seen the judge's own share decides.
    beliefs = np.array([[0.9, 0.1], [0.45, 0.45], [0.0, 0.0], [0.2, 0.6]])
    nobody = np.empty(0, dtype=np.int64)
    assert calibrate_beliefs(beliefs, nobody, nobody).tolist() == pytest.approx([0.9, 0.5, 0.5, 0.25])
    ones = np.array([1, 1])
    assert calibrate_beliefs(beliefs, np.array([0, 3]), ones).tolist() == pytest.approx([0.9, 0.5, 0.5, 0.25])
    assert most_uncertain(np.array([0.9, 0.5, 0.5, 0.25]), np.array([1]), 2).tolist() == [2, 3]


# In the replay


def believing_campaign(
    pairs=40, *, without=None, believes=True, gold=True, said_alone=False, windowed=0
) -> tuple[Campaign, np.ndarray, np.ndarray]:
    """One judge with log-probabilities, two without; `without`: the pair on which the first gives none.

    `said_alone`: as they were stored while one alternative was asked for, without the answer not given.
    `windowed`: of so many pairs the votes are about the second window of the document, which decided.
    """
    books = make_collection("books")
    judges = [make_judge("sure"), make_judge("mute"), make_judge("third")]
    campaign = make_campaign(books, judges, majority=2)
    reference = make_assessor(books, "reference", "reference")
    beliefs, truth = sure_of_itself(pairs)
    for number, (belief, known) in enumerate(zip(beliefs, truth, strict=True)):
        pair, verdict, window = make_pair(books), int(belief[0] > belief[1]), 2 if number < windowed else 0
        given = None if number == without else {"yes": float(belief[0]), "no": float(belief[1])}
        if given and said_alone:
            given.pop(min(given, key=given.__getitem__))
        for place, judge in enumerate(judges):
            values = {"probabilities": given} if place == 0 and believes else {}
            make_attempt(campaign, pair, judge, verdict, place=place, cost=0.01, window=window, **values)
        if gold:
            make_judgment(pair, reference, int(known))
        Work.objects.filter(pk=end(campaign, pair, str(verdict)).pk).update(window=window)
    return campaign, beliefs, truth


def policies() -> dict[str, dict]:
    found = call("evaluate_policies", "books", "--json").json
    return {one["name"]: one for one in found["policies"] if one["policy"] == "lara"}


@pytest.mark.django_db
def test_the_replay_prints_what_the_plain_script_finds():
    _, beliefs, truth = believing_campaign()
    found = policies()
    assert list(found) == [f"lara {share}: sure" for share in ("3.5%", "12.5%", "25.0%", "50.0%")]
    for name, share, handed in (("lara 12.5%: sure", 0.125, 5), ("lara 50.0%: sure", 0.5, 20)):
        asked, labels = plain_script(beliefs, truth, share)
        own = np.setdiff1d(np.arange(len(truth)), asked)
        one = found[name]
        assert len(asked) == handed == one["escalated"] and one["labelled"] == 40 - handed
        for truth_of, key in ((1, "recall_relevant"), (0, "recall_not_relevant")):
            of = own[truth[own] == truth_of]
            assert one["own"][key]["value"] == pytest.approx((labels[of] == truth_of).mean())
            everyone = truth == truth_of
            assert one["after"]["gold"][key]["value"] == pytest.approx((labels[everyone] == truth_of).mean())
        assert (one["calls"], one["machine"]) == (40, pytest.approx(0.4))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("scene", "why"),
    [
        ({"without": 3}, "sure gave log-probabilities for 9 of 10 pairs with a reference grade"),
        ({"believes": False}, "no judge in this campaign returned log-probabilities"),
        ({"gold": False}, "needs reference grades to stand in for people"),
    ],
)
def test_what_lara_cannot_do_without_is_named(scene, why):
    believing_campaign(10, **scene)
    found = policies()
    assert len(found) == 4 and {one["reason"] for one in found.values()} == {f"not available: {why}"}


@pytest.mark.django_db
def test_votes_about_windows_are_not_calibrated():
    make_campaign(make_collection("films"), [])  # so that the number of the one below is not its key
    campaign, _, _ = believing_campaign(10, windowed=2)
    why = "not available: 2 of 10 pairs were judged window by window; LARA needs votes on whole documents"
    assert {one["reason"] for one in policies().values()} == {why}
    refused = call("lara", "books", "--judge", "sure", "--share", 0.2)
    (line,) = refused.err.splitlines()
    assert refused.code == 2 and f"2 pairs of campaign {campaign.number} " in line and "window by window" in line
    assert not Campaign.objects.filter(policy="lara").exists()
