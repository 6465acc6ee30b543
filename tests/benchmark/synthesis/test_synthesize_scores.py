"""synthesize_scores: what is drawn, which generation is kept, what is dropped (ERank 3.2 and C)."""

import json
from collections import Counter

import pytest

from benchmark.synthesis.scores import draw_by_query, draw_documents, labelled_documents
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, Judgment, Label, Pair, Query
from judges.domain.chains import parse_answer
from judges.models import Attempt, JudgeVersion
from judges.retrieval import synthesis
from tests.called import call
from tests.engine_parts import FAST, make_judge
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.modelserver.fixtures import LocalModels

RANKED = [f"d{place}" for place in range(1, 1001)]


def test_twenty_documents_as_the_paper_draws_them():
    found = draw_documents(["gold"], ["given"], ["gold", *RANKED[:999]], seed="s")
    assert Counter(found.values()) == {"positive": 1, "negative": 1, "hard": 10, "medium": 4, "easy": 4}
    assert len(found) == 20
    for document, kind in found.items():
        low, high = {"hard": (1, 10), "medium": (11, 100), "easy": (101, 1000)}.get(kind, (0, 0))
        # The relevant document was first in the run, and takes no rank.
        assert kind in ("positive", "negative") or low <= int(document[1:]) <= high
    assert found == draw_documents(["gold"], ["given"], ["gold", *RANKED[:999]], seed="s")
    assert found != draw_documents(["gold"], ["given"], ["gold", *RANKED[:999]], seed="t")


def test_a_short_run_gives_what_it_has_and_what_a_query_excludes_is_none_of_its_negatives(db):
    kinds = Counter(draw_documents(["gold"], [], RANKED[:40], seed="s").values())
    assert kinds == {"positive": 1, "hard": 10, "medium": 9}
    assert len(draw_documents(["gold"], [], [], seed="s")) == 1
    assert draw_documents(["a", "b", "c"], ["n"], RANKED, seed="s", number=2) == dict.fromkeys("abc", "positive")
    books = make_collection("books")
    add_query(books, 1, documents=4)
    Query.objects.update(metadata={"excluded_ids": ["d12"]})
    drawn = draw_by_query(books, None, number=20, queries=None, seed=0)
    assert drawn == {"q1": {"d10": "positive", "d11": "hard", "d13": "hard"}}


def add_query(books: Collection, number: int, documents: int = 3) -> None:
    """A query with documents about it, of which the first is labelled relevant."""
    query = make_query(books, f"What is mapping {number}?", answers=[], external_id=f"q{number}")
    for place in range(documents):
        document = make_document(books, f"Mapping {number} has text {place}.", external_id=f"d{number}{place}")
        if place == 0:
            Label.objects.create(pair=make_pair(books, query, document), grade=1, origin="people")


def asked(query: int, text: int) -> str:
    """What stands in the prompts about this document alone."""
    return f"Mapping {query} has text {text}"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("provider", "parameters", "told"),
    [
        ("openai", {}, "3 generations of teacher would be identical: its temperature is 0: set a temperature above 0"),
        ("openai", {"temperature": "default"}, ""),
        ("openai", {"temperature": "default", "seed": 7}, "its seed is fixed"),
        ("anthropic", {"thinking": 2000}, ""),
        ("anthropic", {"temperature": 0}, "its temperature is 0"),
        ("openai", {"temperature": "default", "scale": "0-3"}, "has no scores from 0 to 10"),
    ],
)
def test_a_judge_is_refused_only_where_its_generations_would_be_alike(provider, parameters, told, monkeypatch):
    class Asked(Exception):
        """The judge was not refused."""

    def ask_alone(*args: object, **options: object) -> None:
        raise Asked

    monkeypatch.setattr(synthesis, "ask_inline", ask_alone)
    books = make_collection("books")
    parameters = {"scale": "0-10", **parameters}
    JudgeVersion.objects.create(
        name="teacher", provider=provider, model="m", input_price=1.0, output_price=1.0, parameters=parameters
    )
    with pytest.raises(BadInput if told else Asked, match=told or None):
        synthesis.synthesize(books, "teacher", {}, k=3, budget=1.0)


@pytest.mark.django_db
def test_imported_qrels_say_what_is_relevant_where_no_label_does():
    books = make_collection("books")
    query = make_query(books, "What is mapping?", external_id="q1", answers=[])
    pairs = {
        name: make_pair(books, query, make_document(books, f"Text {name}.", external_id=name))
        for name in ("d1", "d2", "d3", "d4")
    }
    experts = Assessor.objects.create(collection=books, kind="reference", name="qrels")
    for name, grade in {"d1": 1, "d2": 0, "d3": 1}.items():
        Judgment.objects.create(pair=pairs[name], assessor=experts, grade=grade)
    Label.objects.create(pair=pairs["d3"], grade=0, origin="people")
    assert labelled_documents(books) == ({"q1": ["d1"]}, {"q1": ["d2", "d3"]})


@pytest.mark.slow
def test_chains_and_scores_become_training_data_and_long_answers_drop_their_query(model_server, manage, tmp_path):
    books = make_collection("books")
    for number in (1, 2):
        add_query(books, number)
    long = {"text": json.dumps({"reason": "word " * 2400, "score": 5}), "contains": asked(2, 0), "times": 1}
    scores = [{"score": score, "times": 1, "contains": asked(1, 0)} for score in (10, 2, 7)]
    model_server.script(teacher=[long, *scores, {"score": 3}])
    make_judge(model_server, "teacher", parameters={"scale": "0-10", "temperature": 0.8, "max_output_tokens": 4096})
    options = ("--judge", "teacher", "--documents", 3, "--out")
    made = manage("synthesize_scores", "books", *options, tmp_path / "set", "--json", environment=FAST).json
    assert (made["queries"], made["rows"], made["dropped"]) == (1, 3, {"too_long": 1, "no_score": 0})
    assert made["calls"] == 18 == len(model_server.requests())
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text().splitlines()]
    (gold,) = [row for row in rows if row["positive"]]
    assert (gold["score"], gold["k"]) == (7, 3) and abs(gold["mean"] - 19 / 3) < 1e-9
    assert parse_answer(gold["completion"]) == 7 and gold["document"] == "Mapping 1 has text 0."
    assert gold["prompt"].endswith(gold["document"]) and gold["query"] == "What is mapping 1?"
    kept = [json.loads(line) for line in (tmp_path / "set" / "generations.jsonl").read_text().splitlines()]
    assert len(kept) == 9 and sum(row["kept"] for row in kept) == 3 and all(row["tokens"] > 0 for row in kept)
    assert not Label.objects.exclude(origin="people").exists()
    again = manage("synthesize_scores", "books", *options, tmp_path / "again", "--json", environment=FAST).json
    assert (again["calls"], again["calls_cached"], again["rows"]) == (0, 18, 3)
    assert (tmp_path / "again" / "train.jsonl").read_bytes() == (tmp_path / "set" / "train.jsonl").read_bytes()
    assert Attempt.objects.filter(role="vote").count() == 0


CHAIN = " ".join(f"word{number}" for number in range(300))


def scored_books(model_server: LocalModels, *, thinking: dict[int, int], queries: int = 2) -> None:
    """A collection of queries with a relevant document each; the teacher thinks so many tokens about a query."""
    books = make_collection("books")
    script = []
    for number in range(1, queries + 1):
        add_query(books, number)
        tokens = thinking.get(number, 400)
        said = {"thought": CHAIN if tokens <= 400 else " ".join([CHAIN] * 4), "reasoning": tokens, "score": 7}
        script.append({**said, "contains": asked(number, 0)})
    model_server.script(teacher=[*script, {"thought": CHAIN, "reasoning": 400, "score": 3}])
    make_judge(model_server, "teacher", parameters={"scale": "0-10", "temperature": 0.8, "max_output_tokens": 4096})


@pytest.mark.slow
@pytest.mark.django_db
def test_with_chains_the_provider_s_reasoning_is_the_chain_and_stands_in_the_export(model_server, manage, tmp_path):
    scored_books(model_server, thinking={2: 2049, 3: 2048}, queries=3)
    refused = call("export", "books", "--format", "erank-sft", "--out", tmp_path / "none")
    assert refused.code == 2 and "synthesize_scores books" in refused.err
    options = ("--judge", "teacher", "--documents", 3, "--k", 1, "--chains", "--json")
    made = manage("synthesize_scores", "books", *options, environment=FAST).json
    assert (made["queries"], made["rows"], made["dropped"]) == (2, 6, {"too_long": 1, "no_score": 0})
    prompt = model_server.requests()[0]["system"]
    assert "perfect match" in prompt and "80 words" not in prompt
    export = ("export", "books", "--format", "erank-sft", "--near-duplicates", "off", "--split", 1, "--json", "--out")
    manifest = manage(*export, tmp_path / "set").json
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in rows] == ["q1"] * 3 + ["q3"] * 3
    gold = rows[0]
    assert gold["chain"] == CHAIN and gold["completion"] == f"<think>{CHAIN}</think><answer>7</answer>"
    assert (gold["score"], gold["positive"], gold["kind"], gold["k"], gold["mean"]) == (7, True, "positive", 1, 7.0)
    assert {row["kind"] for row in rows[1:3]} == {"hard"} and not any(row["positive"] for row in rows[1:3])
    assert gold["prompt"].count(gold["instruction"]) == 1
    assert gold["prompt"].count(" 0: the document") == gold["prompt"].count(" 10: the document") == 1
    ((reason, left_out),) = manifest["counts"]["left_out"].items()
    assert "2,048 tokens" in reason and left_out == 3
    manage(*export, tmp_path / "again")
    for name in ("train.jsonl", "manifest.json"):
        assert (tmp_path / "set" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    back = manage("import_collection", "back", tmp_path / "set" / "train.jsonl", "--json").json
    assert (back["queries"], back["pairs"], back["judgments"]) == (2, 6, 2)
    pairs = Pair.objects.filter(collection__name="back").values_list("query__text", "document__text", "teacher_score")
    assert set(pairs) == {(row["query"], row["document"], row["score"] / 10) for row in rows}
    run = tmp_path / "x.run"
    run.write_text("q1 Q0 d1 1 1.0 x\n")
    refused = manage(*export[:-1], "--run", run, "--out", tmp_path / "no", check=False)
    assert refused.code == 2 and refused.err.startswith("--run: ")


@pytest.mark.django_db(transaction=True)
def test_hidden_tokens_that_are_not_in_the_data_do_not_count(model_server, tmp_path):
    scored_books(model_server, thinking={})
    model_server.script(teacher=[{"reasoning": 3000, "score": 5}])
    made = call("synthesize_scores", "books", "--judge", "teacher", "--documents", 3, "--k", 1, "--chains",
                "--out", tmp_path / "set", "--json").json  # fmt: skip
    assert (made["queries"], made["dropped"]) == (2, {"too_long": 0, "no_score": 0})
    row = json.loads((tmp_path / "set" / "train.jsonl").read_text().splitlines()[0])
    assert row["chain"] and row["completion"] == f"<think>{row['chain']}</think><answer>5</answer>"
