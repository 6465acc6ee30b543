"""Panels of any odd size from 1, samples of one model, and policies that need only who takes part."""

from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from corpus.errors import BadInput
from judges.campaigns import configurations
from judges.campaigns.estimates import CampaignSize, estimate_campaign
from judges.domain.copies import copy_groups, number_names, sample_indexes
from judges.domain.ensemble import (
    SIZES,
    asked_first,
    count_votes,
    drawn_first,
    expected_votes,
    next_votes,
    usual_majority,
)
from judges.models import JudgeVersion, Panel
from judges.panels.configuration import store_judges_file
from judges.panels.judges_file import parse
from judges.panels.panel_table import PanelSettings
from judges.records import Judge
from tests.factories import make_collection

WARM = 'temperature = 0.7\nbase_url = "http://127.0.0.1:9/v1"'


def judges(*names: str, more: str = "") -> str:
    """[[judge]] tables of OpenAI; `more` stands in each."""
    return "\n".join(f'[[judge]]\nname = "{name}"\nprovider = "openai"\nmodel = "m-{name}"\n{more}' for name in names)


def panel(lines: str, *names: str, more: str = "") -> PanelSettings:
    """The panel of a file with these judges."""
    return parse(judges(*names, more=more) + f"\n[panel]\n{lines}").panel


def listed(names: object) -> str:
    """As TOML writes them."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


# --- the judges file ---


@pytest.mark.parametrize(("size", "majority"), [(1, 1), (3, 2), (5, 3), (7, 4), (9, 5)])
def test_a_panel_of_each_size_takes_more_than_half_and_no_less(size: int, majority: int) -> None:
    names = [f"j{number}" for number in range(size)]
    lines = f"ensemble = {listed(names)}"
    found = panel(lines, *names)
    assert (found.ensemble, found.majority, found.debate) == (names, majority, [])
    assert panel(f"{lines}\nmajority = {size}", *names).majority == size
    for wrong in (majority - 1, size + 1):
        with pytest.raises(BadInput, match=rf"majority .*from {majority} to {size}"):
            panel(f"{lines}\nmajority = {wrong}", *names)


@pytest.mark.parametrize(
    ("size", "why"),
    [
        *[(size, "an even number could tie") for size in (0, 2, 4, 6, 8)],
        *[(size, "9 at most") for size in (10, 11, 13)],
    ],
)
def test_a_panel_of_another_size_is_refused(size: int, why: str) -> None:
    names = [f"j{number}" for number in range(max(size, 1))]
    told = f"ensemble must name 1, 3, 5, 7 or 9 judges, and names {size}: {why}"
    with pytest.raises(BadInput, match=told) as caught:
        panel(f'debate = ["j0", "j0"]\nensemble = {listed(names[:size])}', *names)
    assert "\n" not in str(caught.value)


def test_a_panel_has_who_takes_part_and_one_judge_needs_none() -> None:
    found = parse(judges("one")).panel
    assert (found.name, found.ensemble, found.debate, found.majority) == ("main", ["one"], [], 1)
    with pytest.raises(BadInput, match=r"panel is missing.* 2;"):
        parse(judges("one", "two"))
    vectors = '\n[[judge]]\nname = "v"\nprovider = "embed-endpoint"\nmodel = "v"\nbase_url = "http://h/v1"'
    assert parse(judges("one") + vectors).panel.ensemble == ["one"]
    assert panel('debate = ["a", "b"]', "a", "b").ensemble == []
    assert panel('ensemble = ["a"]', "a", "b").debate == []
    with pytest.raises(BadInput, match="names no one"):
        panel('name = "mine"', "a", "b")
    with pytest.raises(BadInput, match=r"majority .*no one votes"):
        panel('debate = ["a", "b"]\nmajority = 1', "a", "b")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("", "its temperature is 0: set a temperature above 0"),
        ("temperature = 0", "its temperature is 0"),
        ("temperature = 0.7\nseed = 3", "its seed is fixed: take seed out"),
    ],
)
def test_samples_that_would_be_alike_are_refused_with_the_reason(more: str, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        panel('ensemble = ["a", "a", "a"]', "a", more=more)
    assert 'ensemble names "a" 3 times' in str(caught.value) and why in str(caught.value)


def test_samples_are_taken_where_they_can_differ_and_copies_are_one_model() -> None:
    assert panel('ensemble = ["a", "a", "a", "a", "a"]', "a", more="temperature = 0.7").ensemble == ["a"] * 5
    own = '[[judge]]\nname = "a"\nprovider = "anthropic"\nmodel = "m"\n[panel]\nensemble = ["a", "a", "a"]'
    assert parse(own).panel.majority == 2
    offline = '[[judge]]\nname = "a"\nprovider = "offline"\nmodel = "bm25"\n[panel]\nensemble = ["a", "a", "a"]'
    with pytest.raises(BadInput, match="offline judges answer"):
        parse(offline)
    found = [judge(1), judge(2, model="n"), judge(3, api_key_env="OTHER"), judge(4, parameters={"temperature": 1})]
    assert copy_groups(found) == ((0, 2),)
    assert sample_indexes(found) == (0, 0, 1, 0), "or two accounts of one model would share one cached answer"
    assert number_names(["a", "b", "a", "a"]) == ("a #1", "b", "a #2", "a #3")


# --- copies and their names ---


def judge(number: int, name: str = "", model: str = "m", **values: object) -> Judge:
    return Judge(name or f"j{number}", "openai", model, id=number, **values)


# --- early stop ---


@pytest.mark.parametrize(("size", "together"), [(1, 1), (3, 2), (5, 3), (7, 4), (9, 5)])
def test_an_early_stop_asks_the_fewest_who_can_decide(size: int, together: int) -> None:
    assert asked_first(size) == len(next_votes({}, size, usual_majority(size), True, 5)) == together
    assert len(drawn_first(size, True, 5)) == together
    agreed = dict.fromkeys(drawn_first(size, True, 5), 1)
    assert next_votes(agreed, size, usual_majority(size), True, 5) == []


@given(st.sampled_from(SIZES), st.data())
def test_an_early_stop_of_any_size_never_changes_the_label(size: int, data: st.DataObject) -> None:
    answers = data.draw(st.lists(st.sampled_from([0, 1, None]), min_size=size, max_size=size))
    majority = data.draw(st.integers(usual_majority(size), size))
    votes: dict[int, int | None] = {}
    while places := next_votes(votes, size, majority, True, 3):
        votes |= {place: answers[place] for place in places}
    assert count_votes(votes.values()).label(majority) == count_votes(answers).label(majority)


@pytest.mark.parametrize("size", SIZES)
def test_the_estimate_follows_the_early_stop_of_each_size(size: int) -> None:
    voters = [judge(number) for number in range(size)]
    early = estimate_campaign(CampaignSize(100, "ensemble", voters=voters, early_stop=True), []).calls
    assert early.low == pytest.approx(100 * asked_first(size))
    assert early.expected == pytest.approx(100 * expected_votes(size, usual_majority(size)))
    assert early.upper == pytest.approx(100 * size)
    assert size != 5 or expected_votes(5, 3) == pytest.approx(3.4, abs=0.001)
    every = estimate_campaign(CampaignSize(100, "debate+ensemble", voters=voters, early_stop=True), []).calls
    assert every.low == 100 * size, "beside a debate all are asked"


# --- policies ---


def taken(text: str) -> None:
    store_judges_file(parse(text))


def test_without_a_policy_the_panel_does_all_that_its_members_can(db: None) -> None:
    taken(judges("one"))
    found = configurations.build_configuration()
    assert (found.policy, [one.name for one in found.voters], found.majority) == ("single", ["one"], 1)
    taken(judges("a", "b") + '\n[panel]\ndebate = ["a", "b"]')
    assert configurations.build_configuration().policy == "debate"
    taken(judges("a", "b", "c") + '\n[panel]\nensemble = ["a", "b", "c"]')
    assert (configurations.build_configuration().policy, configurations.build_configuration().majority) == (
        "ensemble",
        2,
    )
    assert configurations.build_configuration(panel="offline").policy == "debate+ensemble"


@pytest.mark.parametrize(
    ("file", "policy", "message"),
    [
        (judges("one"), "debate", "--debaters: Policy debate needs two debaters, and panel main has none"),
        (judges("one"), "debate+ensemble", "needs two debaters"),
        (judges("a", "b") + '\n[panel]\ndebate = ["a", "b"]', "single", "--judges: Policy single needs judges"),
        (judges("a", "b") + '\n[panel]\ndebate = ["a", "b"]', "ensemble", "name some, or choose another policy."),
    ],
)
def test_a_policy_that_needs_what_the_panel_lacks_is_refused_in_one_line(db, capsys, file, policy, message):
    taken(file)
    make_collection("books")
    with pytest.raises(SystemExit) as caught:
        call_command("judge", "books", "--policy", policy)
    said = capsys.readouterr()
    assert (caught.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert message in said.err


def test_the_judges_of_one_campaign_may_be_another_odd_number(db: None) -> None:
    taken(judges("a", "b", "c", "d", "e", more=WARM) + '\n[panel]\nensemble = ["a", "b", "c", "d", "e"]\nmajority = 4')
    of = configurations.build_configuration
    assert of(policy="ensemble").majority == 4
    assert of(policy="ensemble", judges=list("edcba")).majority == 4, "other judges in the same number"
    assert of(policy="ensemble", judges=["a", "b", "c"]).majority == 2
    assert of(policy="ensemble", judges=["a"] * 7).majority == 4
    assert Counter(of(policy="ensemble", judges=["a"] * 7).values["voters"]).most_common(1)[0][1] == 7
    with pytest.raises(BadInput, match=r"\(4\) could tie"):
        of(policy="ensemble", judges=["a", "b", "c", "d"])
    with pytest.raises(BadInput, match="9 judges, not 11"):
        of(policy="ensemble", judges=["a"] * 11)
    assert len(of(policy="single", judges=["a"] * 11).voters) == 1, "one is asked, whoever else is named"
    JudgeVersion.objects.filter(name="a").update(parameters={})
    with pytest.raises(BadInput, match=r"a is named 3 times.* temperature"):
        of(policy="ensemble", judges=["a", "a", "a"])


def test_what_decides_is_said_in_words(db: None) -> None:
    taken(judges("a", "b", more=WARM) + '\n[panel]\nensemble = ["a", "a", "b"]')
    found = configurations.build_configuration()
    assert found.counted == (
        "2 of 3 votes must agree, each counts as one; 2 of them are samples of m-a; "
        "samples of one model share its errors"
    )
    assert [name for name, _ in found.seats] == ["a #1", "a #2", "b"]
    assert not found.debates_for_people
    assert Panel.objects.get(name="main").majority == 2


# --- pages ---


def configured(folder: Path, text: str) -> str:
    """What configure_judges prints."""
    (folder / "judges.toml").write_text(text)
    out = StringIO()
    call_command("configure_judges", str(folder / "judges.toml"), stdout=out)
    return out.getvalue()


def test_configure_judges_warns_of_voters_that_are_one_judge_under_several_names(db: None, tmp_path: Path) -> None:
    one = judges("a", "b", "c").replace('"m-b"', '"m-a"')
    voting = '\n[panel]\nensemble = ["a", "b", "c"]'
    told = configured(tmp_path, one + voting)
    assert "a, b are one model" in told and "temperature = 0.7" in told
    assert "alike" not in configured(tmp_path, one.replace("provider", f"{WARM}\nprovider") + voting)
    assert "alike" not in configured(tmp_path, judges("a", "b", "c") + voting)


def test_a_file_of_an_embedder_alone_is_loaded_and_leaves_the_default_panel(db: None, tmp_path: Path) -> None:
    vectors = '[[judge]]\nname = "v"\nprovider = "embed-endpoint"\nmodel = "v"\nbase_url = "http://h/v1"'
    told = configured(tmp_path, vectors)
    assert "v: new, version 1" in told and "No judge of this file judges pairs" in told
    assert not Panel.objects.filter(name="main").exists()
    configured(tmp_path, judges("a"))
    configured(tmp_path, vectors)
    assert Panel.objects.get(is_default=True).ensemble == ["a"]
    with pytest.raises(BadInput, match='names "v", which makes vectors'):
        parse(vectors + '\n[panel]\nensemble = ["v"]')
