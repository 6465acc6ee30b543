"""Scoring with a model folder: the shared prompt computed once, exactly; another prompt refused (check 8); s x P(s)."""

import json
import math
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from transformers import AutoConfig

from corpus.errors import BadInput
from tests.called import call
from tests.factories import make_collection, make_document, make_query
from tests.published import by_cross_encoder, by_transformers
from tests.tiny_models import adapter_of, dev_rows, tiny
from training.published import protocol
from training.published.causal import LoraTrained
from training.published.chains import ChainPrompt, GeneratedScore
from training.published.erank import ErankScorer
from training.published.margins import PromptTokens
from training.published.opening import open_scorer
from training.published.prefixed import can_share
from training.published.protocol import ServingRequest
from training.published.publication import Record
from training.published.scorer import CausalScorer
from training.published.tiny_bases import tiny_base, tiny_encoder
from training.recipes import erank_prompt, rendering
from training.recipes.calibration import Calibration
from training.trainers.finishing import finish_training

TEXTS = ["A dictionary finds a key by its hash.", "", "Lists are mutable. " * 15, "yes", "键必须可哈希", "a " * 300]
QUERY = "Why must keys be hashable?"
# As the two model cards print them.
PUBLISHED = {
    "qwen3-reranker": (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n"
        "<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    ),
    "prism": (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        "provided. <|im_end|>\n<|im_start|>user\n"
        '<Instruct>: Judge if the document is relevant to the query. Reply "yes" or "no".\nOn "yes", also emit:\n'
        "<contribution>One sentence covering every core point the document contributes to the query, without "
        "elaboration.</contribution>\n<evidence>Self-contained rewrite of the query-relevant content. Rules:\n"
        "- Faithful: rephrase only; add or infer nothing.\n- Self-contained: evidence alone must fully answer the "
        "query.\n- Concise: drop query-irrelevant background.\n- Verbatim (no translation): proper nouns, terms, "
        "abbreviations, numbers, dates, code, URLs.\n- Output language: multilingual doc → query's language; "
        "else doc's language.</evidence>\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    ),
}


@pytest.fixture(scope="module", params=["qwen3", "qwen3.5"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of ours, of each shape."""
    folder = tmp_path_factory.mktemp("scorer")
    base, yes_id, no_id = tiny(folder / "base", request.param)
    one = LoraTrained(
        base, adapter_of(base, folder / "adapter"), PromptTokens(rendering.QUORUM.render, yes_id, no_id, 384)
    )
    record = Record(
        "causal", "prism", "tiny", {}, {}, Calibration(), prompt=rendering.QUORUM.text,
        prompt_sha256=rendering.QUORUM.sha256, yes_id=yes_id, no_id=no_id, max_length=384, tiny=True,
    )  # fmt: skip
    finish_training(folder / "out", one, dev_rows(), record, report=lambda phase: None)
    return folder / "out"


def tolerance(published: Path) -> float:
    """1e-5 where all layers look back at all tokens.

    Linear attention carries a state through the text: what is rounded on the way adds up, otherwise
    on each processor (more than 1e-5 was seen on one), so its bound is the 1e-4 that a published
    model is held to.
    """
    return 1e-5 if can_share(AutoConfig.from_pretrained(published)) else 1e-4


def farthest(found: list[float], wanted: list[float]) -> float:
    """The largest difference, so that a failure says how large it was."""
    return max(abs(one - other) for one, other in zip(found, wanted, strict=True))


def test_many_documents_score_as_one_by_one_and_as_other_libraries_say(published):
    scorer, near = open_scorer(published), tolerance(published)
    together = scorer.margins(QUERY, TEXTS)
    assert farthest(together, [scorer.margins(QUERY, [text])[0] for text in TEXTS]) < near
    pairs = [(QUERY, text) for text in TEXTS[:5]]
    assert farthest(together[:5], by_transformers(published, pairs)) < near
    assert farthest(together[:5], by_cross_encoder(published, pairs)) < near
    assert len({round(value, 7) for value in together}) == len(TEXTS)
    asked = [ServingRequest(QUERY, TEXTS[:2]), ServingRequest("other", TEXTS[:1], "Only code counts.")]
    several = scorer.score(asked)
    assert [len(found) for found in several] == [2, 1]
    # Queries that are scored together do not see each other.
    assert farthest([one.margin for one in several[0]], scorer.margins(QUERY, TEXTS[:2])) < near
    assert scorer.margins("other", TEXTS[:1]) != scorer.margins("other", TEXTS[:1], "Only code counts.")
    assert several[1][0].margin == pytest.approx(scorer.margins("other", TEXTS[:1], "Only code counts.")[0], abs=near)
    assert scorer.margins(QUERY, []) == [] and scorer.words == "tiny model, CPU"


@pytest.mark.parametrize("change", ["prompt", "prompt_sha256"])
def test_a_prompt_that_differs_by_one_byte_is_refused(change, published, tmp_path):
    other = tmp_path / "model"
    shutil.copytree(published, other)
    about = json.loads((other / "reranker.json").read_text())
    about[change] = about[change][:-1] + ("x" if about[change][-1] != "x" else "y")
    (other / "reranker.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match="another prompt"):
        open_scorer(other)


def test_a_reranker_of_others_is_asked_with_its_own_template(published, tmp_path):
    """Ours without our file, and with other words in its template: what CrossEncoder makes of it is what counts."""
    other = tmp_path / "model"
    shutil.copytree(published, other)
    (other / "reranker.json").unlink()
    template = other / "chat_template.jinja"
    template.write_text(template.read_text().replace("You decide whether", "Judge whether"))
    pairs = [(QUERY, text) for text in TEXTS[:3]]
    found = open_scorer(other).margins(QUERY, TEXTS[:3])
    assert found == pytest.approx(by_cross_encoder(other, pairs), abs=tolerance(published))
    assert found != pytest.approx(open_scorer(published).margins(QUERY, TEXTS[:3]), abs=1e-6)


def test_documents_that_do_not_fit_are_counted_a_model_writes_and_bf16_is_said(published):
    scorer = open_scorer(published)
    (whole,) = scorer.score([ServingRequest(QUERY, TEXTS)])
    assert [one.is_cut for one in whole] == [False, False, False, False, False, True]
    (few,) = scorer.score([ServingRequest(QUERY, TEXTS, document_tokens=3)])
    assert [one.is_cut for one in few] == [True, False, True, False, True, True]
    short = scorer.tokenizer.decode(scorer.tokenizer(TEXTS[0], add_special_tokens=False)["input_ids"][:3])
    assert few[0].margin == pytest.approx(scorer.margins(QUERY, [short])[0], abs=tolerance(published))
    together = scorer.write(ServingRequest(QUERY, TEXTS[:3]), 8)
    alone = [scorer.write(ServingRequest(QUERY, [text]), 8)[0] for text in TEXTS[:3]]
    assert together == alone and all(one.is_cut for one in together)
    assert protocol.NEW_TOKENS == 512
    half = open_scorer(published, precision="bf16")
    assert (half.precision, half.words) == ("bf16", "tiny model, CPU, bf16")
    assert (scorer.precision, scorer.words) == ("fp32", "tiny model, CPU")
    assert 0 < farthest(half.margins(QUERY, TEXTS), scorer.margins(QUERY, TEXTS)) < 0.1
    with pytest.raises(BadInput, match=r"tf32 .* CPU"):
        open_scorer(published, precision="tf32")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A causal model of others: no record, a chat template without roles of pairs, room for 4,096 tokens and more."""
    folder, _, _ = tiny(tmp_path / "foreign", "qwen3")
    config = json.loads((folder / "config.json").read_text())
    del config["quorum_tiny"]
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 40_960}))
    about = json.loads((folder / "tokenizer_config.json").read_text())
    about |= {"model_max_length": 131_072, "chat_template": "{{ messages[0].content }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


def test_what_is_no_model_or_has_no_template_for_pairs_is_refused_and_presets_are_named(foreign, tmp_path):
    with pytest.raises(BadInput, match="quorum, prism, qwen3-reranker"):
        open_scorer(foreign)
    with pytest.raises(BadInput, match=r"no config\.json"):
        open_scorer(tmp_path)


@pytest.mark.parametrize("name", ["prism", "qwen3-reranker"])
def test_presets_ask_as_the_published_models_are_asked(name, foreign):
    scorer = open_scorer(foreign, prompt=name)
    assert isinstance(scorer, CausalScorer) and scorer.prompt_name == name
    assert scorer.prompt.max_length == 40_960  # Its own, not ours.
    text = PUBLISHED[name].format(query=QUERY, document=TEXTS[0])
    ids = scorer.tokenizer(text, add_special_tokens=False, return_tensors="pt")
    with torch.no_grad():
        logits = scorer.model(**ids).logits[0, -1]
    wanted = float(logits[scorer.prompt.yes_id] - logits[scorer.prompt.no_id])
    assert scorer.margins(QUERY, TEXTS[:1]) == pytest.approx([wanted], abs=1e-5)
    # Prism's prompt has one instruction, and its scores mean nothing with another.
    same = scorer.margins(QUERY, TEXTS[:1], "Only code counts.") == pytest.approx([wanted], abs=1e-5)
    assert same == (name == "prism")


def test_an_encoder_scores_alike_alone_and_together(tmp_path):
    scorer = open_scorer(tiny_encoder(tmp_path / "encoder", max_length=256))
    together = scorer.margins(QUERY, TEXTS)
    assert together == pytest.approx([scorer.margins(QUERY, [text])[0] for text in TEXTS], abs=1e-5)
    assert scorer.write(ServingRequest(QUERY, TEXTS[:1])) == [("", False)]
    (long,) = scorer.score([ServingRequest(QUERY, ["word " * 4000, "short"])])
    assert [one.is_cut for one in long] == [True, False]


ANSWERS = {
    "beta": GeneratedScore("<think>a</think><answer>8</answer>", 8, 0.7, []),
    "alpha": GeneratedScore("<think>a</think><answer>7</answer>", 7, 0.9, []),
    "gamma": GeneratedScore("<think>a</think><answer>11</answer>", None, 0.0, []),
    "delta": GeneratedScore("<think>a</think><answer>0</answer>", 0, 0.8, []),
}
"""What the model says about a document that has this word."""


@pytest.fixture
def erank(tmp_path: Path) -> Path:
    folder = tiny_base(tmp_path / "model")
    prompt = {"prompt": erank_prompt.chain_prompt_text(), "prompt_sha256": erank_prompt.chain_prompt_sha256()}
    about = {"kind": "erank", **prompt, "max_prompt": 400, "max_response": 6, "calibration": {"a": 2.0, "b": 0.0}}
    (folder / "reranker.json").write_text(json.dumps(about))
    return folder


@pytest.mark.django_db
def test_rerank_orders_by_score_times_probability_and_names_malformed_answers(erank, tmp_path, monkeypatch):
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
    told = call("rerank", "--model", erank, *given).out
    lines = [line.split() for line in (tmp_path / "out.run").read_text().splitlines()]
    assert [line[2] for line in lines] == ["alpha", "beta", "delta", "gamma"]
    assert [float(line[4]) for line in lines] == pytest.approx([6.3, 5.6, 0.0, -1.0])
    assert "\n1 of 4 answers" in told


def test_what_erank_writes_is_read_as_an_answer_cut_calibrated_around_the_middle_and_asked_by_its_prompt(erank):
    scorer = open_scorer(erank)
    assert isinstance(scorer, ErankScorer)
    request = ServingRequest("why", ["because", "not at all"], "")
    assert [len(found) for found in scorer.score([request])] == [2]
    assert scorer.margins("why", ["because"]) == [-1.0] and scorer.describe_margins([0.0]) == ""
    assert [one.is_cut for one in scorer.write(request, 3)] == [True, True]
    # `"score": "raw"`: of 0 to 10, a score of 1 speaks against a document.
    assert scorer.own_probability(5.0) == 0.5 and scorer.own_probability(1.0) == pytest.approx(1 / (1 + math.exp(4.0)))
    assert scorer.own_probability(-1.0) < scorer.own_probability(0.0) < 0.01
    assert scorer.probability(5.0) == 0.5 and scorer.probability(6.3) > 0.9 > 0.1 > scorer.probability(-1.0)
    texts = ["a short one", "one two three four five six seven eight nine ten " * 3]
    short, cut = scorer.encode(ServingRequest("why", texts, document_tokens=8))
    whole = scorer.encode(ServingRequest("why", texts))
    assert (short.ids, short.is_cut) == (whole[0].ids, False)
    assert cut.is_cut and len(cut.ids) < len(whole[1].ids) and not whole[1].is_cut
    assert "ten" not in scorer.tokenizer.decode(cut.ids).rpartition("Document")[2]
    about = json.loads((erank / "reranker.json").read_text())
    (erank / "reranker.json").write_text(json.dumps(about | {"prompt_sha256": "0" * 64}))
    with pytest.raises(BadInput, match="another prompt"):
        open_scorer(erank)
