"""A model of kind `erank` ranks by s x P(s) of its own answers."""

import json
import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from corpus.errors import BadInput  # noqa: E402
from tests.called import call  # noqa: E402
from tests.factories import make_collection, make_document, make_query  # noqa: E402
from training.published.chains import ChainPrompt, GeneratedScore  # noqa: E402
from training.published.erank import ErankScorer  # noqa: E402
from training.published.opening import open_scorer  # noqa: E402
from training.published.protocol import ServingRequest  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402
from training.recipes import erank_prompt  # noqa: E402

ANSWERS = {
    "beta": GeneratedScore("<think>a</think><answer>8</answer>", 8, 0.7, []),
    "alpha": GeneratedScore("<think>a</think><answer>7</answer>", 7, 0.9, []),
    "gamma": GeneratedScore("<think>a</think><answer>11</answer>", None, 0.0, []),
    "delta": GeneratedScore("<think>a</think><answer>0</answer>", 0, 0.8, []),
}
"""What the model says about a document that has this word."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tiny_base(tmp_path / "model")
    about = {
        "kind": "erank",
        "prompt": erank_prompt.chain_prompt_text(),
        "prompt_sha256": erank_prompt.chain_prompt_sha256(),
        "max_prompt": 400,
        "max_response": 6,
        "calibration": {"a": 2.0, "b": 0.0},
    }
    (folder / "reranker.json").write_text(json.dumps(about))
    return folder


@pytest.mark.django_db
def test_rerank_orders_by_score_times_probability_and_names_malformed_answers(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(self: ChainPrompt, model: object, tokenizer: object, prompts: list[object]) -> list[GeneratedScore]:
        texts = [tokenizer.decode(one.ids) for one in prompts]  # type: ignore[attr-defined]
        return [next(said for word, said in ANSWERS.items() if word in text) for text in texts]

    monkeypatch.setattr(ChainPrompt, "answer", answer)
    books = make_collection("books")
    make_query(books, "which letter", external_id="q1")
    for name in ANSWERS:
        make_document(books, f"It is {name}.", external_id=name)
    ranking = tmp_path / "in.run"
    ranking.write_text("".join(f"q1 Q0 {name} {place} {9 - place} bm25\n" for place, name in enumerate(ANSWERS, 1)))
    given = ("--run", ranking, "--collection", "books", "--out", tmp_path / "out.run")
    told = call("rerank", "--model", model, *given).out
    lines = [line.split() for line in (tmp_path / "out.run").read_text().splitlines()]
    assert [line[2] for line in lines] == ["alpha", "beta", "delta", "gamma"]
    assert [float(line[4]) for line in lines] == pytest.approx([6.3, 5.6, 0.0, -1.0])
    assert "\n1 of 4 answers" in told


def test_what_it_writes_is_read_as_an_answer_and_calibrated_around_the_middle(model: Path) -> None:
    scorer = open_scorer(model)
    assert isinstance(scorer, ErankScorer)
    request = ServingRequest("why", ["because", "not at all"], "")
    assert [len(found) for found in scorer.score([request])] == [2]
    assert scorer.margins("why", ["because"]) == [-1.0] and scorer.describe_margins([0.0]) == ""
    assert [one.is_cut for one in scorer.write(request, 3)] == [True, True]
    assert scorer.probability(5.0) == 0.5 and scorer.probability(6.3) > 0.9 > 0.1 > scorer.probability(-1.0)


def test_another_prompt_is_refused(model: Path) -> None:
    about = json.loads((model / "reranker.json").read_text())
    (model / "reranker.json").write_text(json.dumps(about | {"prompt_sha256": "0" * 64}))
    with pytest.raises(BadInput, match="another prompt"):
        open_scorer(model)


def test_its_own_probability_is_a_half_in_the_middle_of_the_scale(model: Path) -> None:
    """`"score": "raw"`: of 0 to 10, a score of 1 speaks against a document."""
    scorer = open_scorer(model)
    assert scorer.own_probability(5.0) == 0.5
    assert scorer.own_probability(1.0) == pytest.approx(1 / (1 + math.exp(4.0)))
    assert scorer.own_probability(-1.0) < scorer.own_probability(0.0) < 0.01


def test_max_tokens_per_doc_cuts_each_document(model: Path) -> None:
    scorer = open_scorer(model)
    assert isinstance(scorer, ErankScorer)
    texts = ["a short one", "one two three four five six seven eight nine ten " * 3]
    short, cut = scorer.encode(ServingRequest("why", texts, document_tokens=8))
    whole = scorer.encode(ServingRequest("why", texts))
    assert (short.ids, short.is_cut) == (whole[0].ids, False)
    assert cut.is_cut and len(cut.ids) < len(whole[1].ids) and not whole[1].is_cut
    assert "ten" not in scorer.tokenizer.decode(cut.ids).rpartition("Document")[2]
