"""`holes`: from files to the filled version, with the offline judges and with people; what it prints, and refuses."""

import pytest

from benchmark.hole_filling import funnel
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels import reading
from corpus.models import Item, Label, Pair
from judges.models import Campaign, JudgeVersion, Panel, Work
from judges.panels.offline_panel import ensure_offline
from tests.called import call
from tests.conftest import Finished
from tests.factories import make_document
from tests.rankings import make_run, make_texts

ONE = "q1 Q0 a 1 3 one\nq1 Q0 b 2 2 one\nq1 Q0 c 3 1 one\n"
TWO = "q1 Q0 c 1 3 two\nq1 Q0 a 2 2 two\nq1 Q0 d 3 1 two\n"


@pytest.fixture
def books(db):
    """One query with documents a to d, of which the qrels know a (relevant)."""
    texts = {name: f"A mapping {name} maps values." for name in "abcd"}
    return make_texts("books", texts, {"q1": "What does a mapping map?"}, {"q1": {"a": 1}})


@pytest.fixture
def files(tmp_path):
    (tmp_path / "one.run").write_text(ONE)
    (tmp_path / "two.run").write_text(TWO)
    return [tmp_path / "one.run", tmp_path / "two.run"]


def holes(*args: object) -> Finished:
    return call("holes", *args)


def test_how_to_debate_is_said_as_in_judge_and_belongs_to_the_filling(books, files):
    """The same command goes on; other rounds are another campaign."""
    ensure_offline()
    first, second, third, *_ = (
        JudgeVersion.objects.filter(is_current=True).order_by("name").values_list("name", flat=True)
    )
    Panel.objects.create(name="mine", debate=[first, second], ensemble=[], majority=1)
    command = ["books", "--runs", *files, "--depth", 3, "--fill", "--panel", "mine", "--json"]
    debated = ["--rounds", 3, "--debaters", f"{second},{first}", "--adjudicator", third]
    for _ in range(2):
        assert (told := holes(*command, *debated)).code == 0, told.err
    campaign, filling = Campaign.objects.get(), Filling.objects.get()
    assert (campaign.policy, campaign.rounds) == ("debate", 3) and campaign.protocol["adjudicator"]
    debate = {name: filling.options[name] for name in ("rounds", "debaters", "adjudicator")}
    assert debate == {"rounds": 3, "debaters": [second, first], "adjudicator": third}
    assert holes(*command).code == 0
    assert sorted(Campaign.objects.values_list("rounds", flat=True)) == [2, 3]


def test_looking_says_what_is_unjudged_and_what_it_could_change(books, files):
    """a is first of one (nDCG 1) and second of two (1/log2 3 = 0.6309); b, c and d are unjudged."""
    told = holes("books", "--runs", *files, "--depth", 3, "--json").json
    assert {key: told[key] for key in ("pool", "judged", "candidates", "known", "queries", "qrels")} == {
        "pool": 4, "judged": 1, "candidates": 3, "known": 0, "queries": 1, "qrels": 1,
    }  # fmt: skip
    assert [(one["name"], one["value"]) for one in told["runs"]] == [
        ("one", 1.0), ("two", pytest.approx(0.6309, abs=1e-4)),
    ]  # fmt: skip
    assert told["runs"][0]["judged"] == pytest.approx(1 / 3)
    assert told["unsettled"] == [["one", "two"]] and told["filling"] is None
    assert not Filling.objects.exists() and not Item.objects.exists()
    again = holes("books", "--runs", *files, "--depth", 3)
    assert "pool of 2 runs to depth 3: 4 pairs of 1 queries, 1 judged" in again.out
    assert "1 of 1 orders" in again.out
    assert Run.objects.count() == 2, "the same files again are the same runs"
    assert holes("books", "--runs", "one", "two", "--depth", 3).out == again.out


def test_the_first_pairs_are_named_without_asking_anybody(books, files):
    """With one grade more the ideal is 1 + 0.6309 = 1.6309. Today one leads by 1 - 0.6309 = 0.3691.

    c (third of one, first of two): (1.5 - 1.6309) / 1.6309 = -0.0803, a move of 0.4493. b (second
    of one): (1.6309 - 0.6309) / 1.6309 = 0.6132, a move of 0.2441. d (third of two): (1 - 1.1309) /
    1.6309, a move of 0.4493.
    """
    told = holes("books", "--runs", *files, "--depth", 3, "--first", 3, "--json").json
    assert [(one["document"], round(one["influence"], 4)) for one in told["first"]] == [
        ("c", 0.4493), ("d", 0.4493), ("b", 0.2441),
    ]  # fmt: skip
    assert not Item.objects.exists() and not Filling.objects.exists()


def test_people_fill_and_the_same_command_writes_the_version(books, files, tmp_path):
    """First the two most informative pairs, of which one is judged; then all."""
    command = ["books", "--runs", *files, "--depth", 3, "--fill", "--people", "--json"]
    sent = holes(*command, "--first", 2).json["filling"]
    assert sent["candidates"] == sent["people_open"] == Item.objects.filter(reason="hole", state="open").count() == 2
    Label.objects.create(pair=Item.objects.order_by("priority")[0].pair, grade=1, origin="people")
    early = holes(*command, "--first", 2, "--with-what-there-is").json["filling"]
    assert (early["settled"], early["after"]) == (1, 2)
    begun = holes(*command)
    assert begun.code == 0 and begun.json["filling"]["people_open"] == 2 and "2 pairs wait for people" in begun.err
    for pair in Pair.objects.filter(items__reason="hole", labels=None):
        Label.objects.create(pair=pair, grade=0, origin="people")
    done = holes(*command, "--out", tmp_path / "filled.txt").json["filling"]
    assert (done["state"], done["settled"], done["relevant"], done["after"]) == ("filled", 3, 1, 3)
    assert (tmp_path / "filled.txt").read_text() == "q1 0 a 1\nq1 0 b 0\nq1 0 c 1\nq1 0 d 0\n"
    assert holes(*command).json["filling"] == done


@pytest.mark.parametrize(
    ("members", "policy"),
    [
        ({"ensemble": ["offline-bm25", "offline-tfidf", "offline-ngrams"], "majority": 2}, "ensemble"),
        ({"debate": ["offline-for", "offline-against"], "ensemble": ["offline-bm25"]}, "debate+ensemble"),
    ],
)
def test_a_filling_judges_by_what_the_panel_can_do(books, files, members, policy):
    ensure_offline()
    Panel.objects.create(name="mine", **{"debate": [], "ensemble": [], "majority": 1, **members})
    command = ["books", "--runs", *files, "--depth", 3, "--fill", "--panel", "mine", "--json"]
    begun = holes(*command)
    assert begun.code == 0, begun.err
    assert Campaign.objects.get().policy == policy
    assert Filling.objects.get().options["policy"] == policy
    assert holes(*command, "--policy", policy).code == 0
    assert Filling.objects.count() == 1, "named or not, it is the same filling"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--runs", "nobody"], "nobody: neither a file nor a run of books"),
        (["--runs", "one", "--people"], "--people: this needs --fill"),
        (["--runs", "one", "--retry-failed"], "--retry-failed: this needs --fill"),
        (["--runs", "one", "--fill", "--people", "--retry-failed"], "--retry-failed: People judge every pair"),
        (["--runs", "one", "--qrels", "7"], "--qrels: books has no qrels version 7"),
        (["--runs", "one", "--fill", "--debaters", "nobody,else"], "nobody"),
        (["--runs", "one", "--fill", "--filter", "a,b"], "--filter: Name three judges"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(books, options, told):
    make_run(books, "one", {"q1": ["a", "b"]})
    done = holes("books", *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
    assert not Filling.objects.exists() and not Item.objects.exists() and not Campaign.objects.exists()


def test_with_everything_judged_there_is_nothing_to_fill(books):
    make_run(books, "known", {"q1": ["a"]})
    for options in ([], ["--first", 5]):
        done = holes("books", "--runs", "known", "--fill", "--people", *options)
        assert done.code == 0 and "nothing to fill" in done.err
    assert not Filling.objects.exists()


@pytest.mark.parametrize(("first", "pairs"), [((), 3), (("--first", 2), 2)])
def test_failed_pairs_are_judged_again_when_that_is_asked_for(books, files, first, pairs):
    command = ["books", "--runs", *files, "--depth", 3, "--fill", "--panel", "offline", *first, "--json"]
    assert holes(*command).code == 0
    Work.objects.update(state="failed", reason="error", error="away")
    Campaign.objects.update(state="finished")
    for more, failed in ((), pairs), (("--retry-failed",), 0):
        told = holes(*command, *more).json["filling"]
        assert (told["failed"], told["pending"]) == (failed, pairs - failed), "failed ones are left alone unless asked"
    assert (Campaign.objects.get().state, Filling.objects.count()) == ("running", 1)
    assert set(Work.objects.values_list("state", "attempt_base", "error")) == {("pending", 4, "")}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_offline_panel_fills_in_one_command(manage, books, files):
    """Real workers: the command waits for its campaign, whatever is escalated goes to people."""
    for name, text in {"e": "A river runs to the sea.", "f": "Towns and their harbours."}.items():
        make_document(books, text, external_id=name)
    files[0].write_text(ONE + "q1 Q0 e 4 0.5 one\nq1 Q0 f 5 0.2 one\n")
    command = ["holes", "books", "--runs", *files, "--fill", "--panel", "offline", "--wait", "--json"]
    done = manage(*command, check=False)
    assert done.code == 0, done.err
    told = done.json["filling"]
    assert (told["asked"], told["pending"], told["failed"]) == (5, 0, 0)
    assert told["labelled"] + told["people_open"] == 5 and told["labelled"] > 0
    (begun,) = Filling.objects.all()
    assert Campaign.objects.get().scope == f"filling {begun.pk}"
    assert funnel.compute_funnel(begun).document == {key: told[key] for key in funnel.compute_funnel(begun).document}
    again = manage(*command, "--with-what-there-is").json["filling"]
    assert again["after"] == 2 and Campaign.objects.count() == 1
    version = Qrels.objects.get(number=2)
    assert version.counts["origins"] == {"original": 1, "debate+ensemble": told["labelled"]}
    assert len(reading.load_named(version)["q1"]) == 1 + told["labelled"]
