"""P table 2 and figure 5 of any outputs: hand-worked rows, and a judge over the local model server."""

import json
from pathlib import Path

import pytest

from corpus.evidence.measures import DIMENSIONS
from corpus.models import Label, Target
from judges.evidence.outputs import OutputRow, mean_scores, measures_table
from judges.models import Attempt, Campaign, Work
from tests.called import call
from tests.conftest import Finished
from tests.engine_parts import collection_of, make_judge, pairs_of
from tests.judges.evidence.test_evidence_campaigns import LIST, MEASURE, SCORES, measured
from tests.modelserver.fixtures import KEY, KEY_ENV

DOCUMENT = "one two three four five six seven eight nine 10"


def said(contribution: str, evidence: str) -> str:
    return f"yes\n<contribution>{contribution}</contribution>\n<evidence>{evidence}</evidence>"


def test_a_table_by_hand() -> None:
    rows = [
        OutputRow(
            1, "?", DOCUMENT, 1, said("It counts to ten.", "one two three 10 and 11")
        ),  # fidelity 1/2, ratio 6/10
        OutputRow(2, "?", DOCUMENT, 1, "no"),
        OutputRow(3, "?", DOCUMENT, 0, said("It counts again.", "one two three")),  # ratio 3/10; not yes/yes
        OutputRow(4, "?", DOCUMENT, 0, "no"),
        OutputRow(5, "?", DOCUMENT, None, "perhaps"),
        OutputRow(6, "?", DOCUMENT, 1, "yes\n<contribution>It counts a third time.</contribution>"),
    ]
    found = measures_table(rows)
    assert found["label_match"] == pytest.approx(3 / 5)
    assert found["format"] == pytest.approx((1 + 1 + 1 + 1 + 0 + 0.7) / 6)
    assert found["fidelity"] == 0.5
    assert found["fidelity_prism"] == 0.5
    part = measures_table(
        [OutputRow(1, "?", "It is 120 metres.", 1, said("It counts to twelve.", "It says 12 metres."))]
    )
    assert (part["fidelity"], part["fidelity_prism"]) == (0.0, 1.0), "12 stands in 120 as a substring only"
    assert (found["rows"], found["labelled"], found["said_yes"], found["yes_yes"]) == (6, 5, 3, 2)
    assert (found["with_fields"], found["with_ratio"]) == (1, 2)
    assert found["compression"] == {
        "p10": pytest.approx(0.33), "median": pytest.approx(0.45), "p90": pytest.approx(0.57),
    }  # fmt: skip
    assert measures_table(rows, {1: (("two three", "10"), None)})["fidelity"] == pytest.approx(2 / 3)
    empty = measures_table([OutputRow(1, "?", DOCUMENT, None, "no")])
    assert (empty["label_match"], empty["fidelity"], empty["compression"]["median"]) == (None, None, None)
    assert set(empty["reasons"]) == {"label_match", "fidelity", "fidelity_prism", "language_by_rule", "compression"}
    scores = dict.fromkeys(DIMENSIONS, 4)
    judged = {1: ((), scores), 2: ((), {**scores, "language": 5}), 3: ((), None)}
    assert mean_scores(judged)["language"] == 4.5
    assert mean_scores({})["language"] is None


def measure(*options: str) -> Finished:
    return call("measure_evidence", "books", *options, "--json")


@pytest.fixture
def outputs(instance: object, tmp_path: Path) -> Path:
    """Two relevant pairs that a model answered with texts, and one that is not relevant."""
    pairs = pairs_of(collection_of(3))
    lines = []
    for number, pair in enumerate(pairs):
        Label.objects.create(pair=pair, grade=int(number < 2), origin="people")
        text = said("It says what the mapping maps.", f"Mapping {number} maps values.") if number < 2 else "no"
        ids = {"query_id": pair.query.external_id, "doc_id": pair.document.external_id}
        lines.append(json.dumps({**ids, "output": text}))
    path = tmp_path / "outputs.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_outputs_are_measured_by_rule_without_a_judge(outputs: Path) -> None:
    found = measure(str(outputs)).json
    assert (found["label_match"], found["format"], found["fidelity"], found["judged"]) == (1.0, 1.0, 1.0, None)
    assert found["compression"]["median"] == 0.5
    assert not Campaign.objects.exists()


def test_compression_counts_tokens_where_a_tokenizer_is_named(outputs: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")  # a token for each character
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words, tokens = measure(str(outputs)).json, measure(str(outputs), "--tokenizer", str(tmp_path)).json
    assert (words["tokens"], tokens["tokens"]) == ("words", "tokens")
    pair = pairs_of(Label.objects.earliest("pk").pair.collection)[0]
    whole = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    assert tokens["compression"]["p10"] == pytest.approx(len("Mapping 0 maps values.") / len(whole), abs=0.02)
    assert tokens["compression"] != words["compression"]


def test_a_judge_scores_outputs_once_and_every_attempt_is_kept(outputs, model_server, monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)
    make_judge(model_server, "measurer")
    named = {"contains": LIST, "text": json.dumps({"entities": ["Mapping"]})}
    model_server.script({"measurer": [named, {"contains": MEASURE, **measured(evidence_faithfulness=5)}]})
    found = measure(str(outputs), "--judge", "measurer").json
    assert found["judged"]["as"] == "quality"
    assert (found["judged"]["rows"], found["judged"]["evidence_faithfulness"]) == (2, 5.0)
    assert found["judged"]["contribution_coverage"] == SCORES["contribution_coverage"]
    assert (found["calls"], found["calls_cached"]) == (4, 0)
    assert Attempt.objects.filter(counts=True, role__in=("entity", "measure")).count() == 4
    assert set(Work.objects.values_list("state", flat=True)) == {"labelled"}
    again = measure(str(outputs), "--judge", "measurer").json
    assert (again["calls"], again["calls_cached"]) == (0, 4)
    assert again["judged"] == found["judged"]
    assert not Target.objects.exists()


def test_another_judge_may_list_the_entities(outputs, model_server, monkeypatch):
    """Prism 5.3: one model lists, another scores."""
    monkeypatch.setenv(KEY_ENV, KEY)
    make_judge(model_server, "measurer")
    make_judge(model_server, "lister")
    named = {"contains": LIST, "text": json.dumps({"entities": ["Mapping"]})}
    model_server.script({"lister": [named], "measurer": [{"contains": MEASURE, **measured(evidence_faithfulness=5)}]})
    found = measure(str(outputs), "--judge", "measurer", "--entities-by", "lister").json
    assert (found["entities_by"], found["judged"]["judge"], found["judged"]["rows"]) == (
        "patterns and lister", "measurer", 2,
    )  # fmt: skip
    asked = {(one["model"], LIST in one["user"]) for one in model_server.requests()}
    assert asked == {("lister", True), ("measurer", False)}
    refused = measure(str(outputs), "--entities-by", "lister")
    assert refused.code == 2 and "--entities-by needs --judge" in refused.err


def test_the_collections_own_targets_are_measured_and_a_writer_says_fidelity_to_teacher(outputs: Path) -> None:
    pair = Label.objects.filter(grade=1).earliest("pk").pair
    Target.objects.create(
        pair=pair, version=1, kind="judge", writer="offline-measurer", good=True,
        contribution="It says what mapping 0 maps.", evidence="Mapping 0 maps hashable values.",
    )  # fmt: skip
    found = measure("--judge", "offline-measurer").json
    assert (found["source"], found["rows"], found["label_match"]) == ("targets", 1, None)
    assert found["judged"]["as"] == "fidelity to teacher"


@pytest.mark.slow
def test_a_judge_that_refuses_every_call_leaves_texts_unjudged(outputs, model_server, monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)
    make_judge(model_server, "measurer")
    model_server.script({"measurer": {"fault": "400"}})
    done = measure(str(outputs), "--judge", "measurer")
    assert done.code == 3
    assert (done.json["judged"]["rows"], done.json["judged"]["without_scores"]) == (0, 2)
    assert done.json["format"] == 1.0
    assert "No text was" in done.err and "measurer gave no" in done.err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{}", ":1: not a JSON object with query_id, doc_id and output"),
        ('{"query_id": "q", "doc_id": "d", "output": "no"}', "has no pair of query q and document d"),
        ('{"query_id": "q", "doc_id": "d", "output": 1}', "ids and output are strings"),
        ("", "there is no line"),
    ],
)
def test_bad_files_are_refused(instance: object, tmp_path: Path, line: str, words: str) -> None:
    collection_of(1)
    path = tmp_path / "outputs.jsonl"
    path.write_text(line)
    done = measure(str(path))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
