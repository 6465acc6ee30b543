"""synthesize_scores: what is drawn, which generation is kept, what is dropped (ERank 3.2 and C, SPEC S5)."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmark.synthesis.scores import draw_documents
from corpus.errors import BadInput
from corpus.models import Label
from judges.models import Attempt, JudgeVersion
from judges.retrieval import synthesis
from tests.conftest import Manage
from tests.engine_parts import FAST, make_judge
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.modelserver.fixtures import LocalModels, _model_server_process, model_server

__all__ = ["_model_server_process", "model_server"]

RANKED = [f"d{place}" for place in range(1, 1001)]


def test_twenty_documents_as_the_paper_draws_them() -> None:
    found = draw_documents(["gold"], ["given"], ["gold", *RANKED[:999]], seed="s")
    assert Counter(found.values()) == {"positive": 1, "negative": 1, "hard": 9, "medium": 5, "easy": 4}
    assert len(found) == 20
    for document, kind in found.items():
        low, high = {"hard": (1, 10), "medium": (11, 100), "easy": (101, 1000)}.get(kind, (0, 0))
        assert kind in ("positive", "negative") or low <= int(document[1:]) + 1 <= high
    assert found == draw_documents(["gold"], ["given"], ["gold", *RANKED[:999]], seed="s")
    assert found != draw_documents(["gold"], ["given"], ["gold", *RANKED[:999]], seed="t")


def test_a_short_run_gives_what_it_has() -> None:
    kinds = Counter(draw_documents(["gold"], [], RANKED[:40], seed="s").values())
    assert kinds == {"positive": 1, "hard": 10, "medium": 9}
    assert len(draw_documents(["gold"], [], [], seed="s")) == 1
    assert draw_documents(["a", "b", "c"], ["n"], RANKED, seed="s", number=2) == dict.fromkeys("abc", "positive")


def asked(query: int, text: int) -> str:
    """What stands in the prompts about this document alone."""
    return f"Mapping {query} has text {text}"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("provider", "parameters", "told"),
    [
        ("openai", {}, "3 generations of teacher would be alike: its temperature is 0: set a temperature above 0"),
        ("openai", {"temperature": "default"}, ""),
        ("openai", {"temperature": "default", "seed": 7}, "its seed is fixed"),
        ("anthropic", {"thinking": 2000}, ""),
        ("anthropic", {"temperature": 0}, "its temperature is 0"),
    ],
)
def test_a_judge_is_refused_only_where_its_generations_would_be_alike(
    provider: str, parameters: dict[str, object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        synthesis.synthesize(books, "teacher", [], k=3, budget=1.0)


@pytest.mark.slow
def test_chains_and_scores_become_training_data_and_long_answers_drop_their_query(
    model_server: LocalModels, manage: Manage, tmp_path: Path
) -> None:
    books = make_collection("books")
    for number in (1, 2):
        query = make_query(books, f"What is mapping {number}?", answers=[])
        for place in range(3):
            document = make_document(books, f"Mapping {number} has text {place}.")
            if place == 0:
                Label.objects.create(pair=make_pair(books, query, document), grade=1, origin="people")
    long = {"text": json.dumps({"reason": "word " * 2400, "score": 5}), "contains": asked(2, 0), "times": 1}
    scores = [{"score": score, "times": 1, "contains": asked(1, 0)} for score in (10, 2, 7)]
    model_server.script(teacher=[long, *scores, {"score": 3}])
    make_judge(
        model_server,
        "teacher",
        parameters={"scale": "0-10", "temperature": 0.8, "max_output_tokens": 4096},
    )
    options = ("--judge", "teacher", "--documents", 3, "--out")
    made = manage("synthesize_scores", "books", *options, tmp_path / "set", "--json", environment=FAST).json
    assert (made["queries"], made["rows"], made["dropped"]) == (1, 3, {"too_long": 1, "no_score": 0})
    assert made["calls"] == 18 == len(model_server.requests())
    rows = [json.loads(line) for line in (tmp_path / "set" / "train.jsonl").read_text().splitlines()]
    (gold,) = [row for row in rows if row["positive"]]
    assert (gold["score"], gold["k"]) == (7, 3) and abs(gold["mean"] - 19 / 3) < 1e-9
    assert json.loads(gold["completion"])["score"] == 7 and "Mapping 1 has text 0" in gold["prompt"]
    kept = [json.loads(line) for line in (tmp_path / "set" / "generations.jsonl").read_text().splitlines()]
    assert len(kept) == 9 and sum(row["kept"] for row in kept) == 3 and all(row["tokens"] > 0 for row in kept)
    assert not Label.objects.exclude(origin="people").exists()
    again = manage("synthesize_scores", "books", *options, tmp_path / "again", "--json", environment=FAST).json
    assert (again["calls"], again["calls_cached"], again["rows"]) == (0, 18, 3)
    assert (tmp_path / "again" / "train.jsonl").read_bytes() == (tmp_path / "set" / "train.jsonl").read_bytes()
    assert Attempt.objects.filter(role="vote").count() == 0


@pytest.mark.slow
def test_a_judge_that_cannot_score_is_refused(model_server: LocalModels, manage: Manage, tmp_path: Path) -> None:
    books = make_collection("books")
    Label.objects.create(pair=make_pair(books), grade=1, origin="people")
    make_judge(model_server, "plain")
    make_judge(model_server, "cold", parameters={"scale": "0-10"})
    for judge, words in (("plain", "answers yes or no"), ("cold", "would be alike"), ("nobody", "there is no judge")):
        refused = manage("synthesize_scores", "books", "--judge", judge, "--out", tmp_path / "set", check=False)
        assert refused.code == 2 and words in refused.err and refused.out == ""
    assert not (tmp_path / "set").exists()
