"""Scoring with a model folder: the shared prompt computed once, exactly; another prompt refused (check 8)."""

import json
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from transformers import AutoConfig  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.published import by_cross_encoder, by_transformers  # noqa: E402
from tests.tiny_models import adapter_of, dev_rows, tiny  # noqa: E402
from training.recipes import rendering  # noqa: E402
from training.recipes.calibration import Calibration  # noqa: E402
from training.serving.protocol import ServingRequest  # noqa: E402
from training.serving.publication import Record  # noqa: E402
from training.serving.scorer import CausalScorer, open_scorer  # noqa: E402
from training.trainers.causal import LoraTrained  # noqa: E402
from training.trainers.finishing import finish_training  # noqa: E402
from training.trainers.margins import PromptTokens  # noqa: E402
from training.trainers.prefixed import can_share  # noqa: E402

TEXTS = ["A dictionary finds a key by its hash.", "", "Lists are mutable. " * 20, "yes", "键必须可哈希", "a " * 300]
QUERY = "Why must keys be hashable?"


@pytest.fixture(scope="module", params=["qwen3", "qwen3.5"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of ours, of each shape."""
    folder = tmp_path_factory.mktemp("scorer")
    base, yes_id, no_id = tiny(folder / "base", request.param)
    one = LoraTrained(
        base, adapter_of(base, folder / "adapter"), PromptTokens(rendering.render_prompt, yes_id, no_id, 384)
    )
    record = Record(
        "causal", "prism", "tiny", {}, {}, Calibration(), prompt=rendering.prompt_text(),
        prompt_sha256=rendering.prompt_sha256(), yes_id=yes_id, no_id=no_id, max_length=384, tiny=True,
    )  # fmt: skip
    finish_training(folder / "out", one, dev_rows(), record, report=lambda phase: None)
    return folder / "out"


def tolerance(published: Path) -> float:
    """1e-5 where all layers look back at all tokens.

    Linear attention carries a state through the text: what is rounded on the way adds up, otherwise on each processor
    (more than 1e-5 was seen on one), so its bound is the 1e-4 that a published model is held to.
    """
    return 1e-5 if can_share(AutoConfig.from_pretrained(published)) else 1e-4


def farthest(found: list[float], wanted: list[float]) -> float:
    """The largest difference, so that a failure says how large it was."""
    return max(abs(one - other) for one, other in zip(found, wanted, strict=True))


def test_many_documents_score_as_one_by_one_and_as_other_libraries_say(published: Path) -> None:
    scorer, near = open_scorer(published), tolerance(published)
    together = scorer.margins(QUERY, TEXTS)
    assert farthest(together, [scorer.margins(QUERY, [text])[0] for text in TEXTS]) < near
    pairs = [(QUERY, text) for text in TEXTS[:5]]
    assert farthest(together[:5], by_transformers(published, pairs)) < near
    assert farthest(together[:5], by_cross_encoder(published, pairs)) < near
    assert len({round(value, 7) for value in together}) == len(TEXTS)
    asked = [ServingRequest(QUERY, TEXTS[:2]), ServingRequest("other", TEXTS[:1], "Only code counts.")]
    assert [len(found) for found in scorer.margins_of(asked)] == [2, 1]
    assert scorer.margins(QUERY, []) == [] and scorer.words == "tiny model, CPU"


def test_the_instruction_changes_the_score(published: Path) -> None:
    scorer = open_scorer(published)
    assert scorer.margins(QUERY, TEXTS[:1], "Only code counts.") != scorer.margins(QUERY, TEXTS[:1])


@pytest.mark.parametrize("change", ["prompt", "prompt_sha256"])
def test_a_prompt_that_differs_by_one_byte_is_refused(change: str, published: Path, tmp_path: Path) -> None:
    other = tmp_path / "model"
    shutil.copytree(published, other)
    about = json.loads((other / "reranker.json").read_text())
    about[change] = about[change][:-1] + ("x" if about[change][-1] != "x" else "y")
    (other / "reranker.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match="was trained with another prompt"):
        open_scorer(other)


def test_our_prompt_changed_by_one_byte_refuses_older_models(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "TO_DOCUMENT", rendering.TO_DOCUMENT + " ")
    with pytest.raises(BadInput, match="was trained with another prompt"):
        open_scorer(published)


def test_a_reranker_of_others_is_asked_with_its_own_template(published: Path, tmp_path: Path) -> None:
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


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no config\.json: name the folder of a model"):
        open_scorer(tmp_path)


def test_a_model_writes_after_its_verdict(published: Path) -> None:
    scorer = open_scorer(published)
    written = scorer.generate(QUERY, TEXTS[0], max_new_tokens=8)
    assert isinstance(written.text, str) and isinstance(written.is_cut, bool)


def test_an_answer_has_room_for_evidence_as_long_as_its_document(published: Path) -> None:
    scorer = open_scorer(published)
    assert isinstance(scorer, CausalScorer)
    assert scorer.room_for("short") == 512
    long = "word " * 1500
    assert scorer.room_for(long) >= len(scorer.tokenizer(long)["input_ids"]) + 100
    assert scorer.room_for(long * 10) == 4096


def test_an_encoder_scores_alike_alone_and_together(tmp_path: Path) -> None:
    from training.trainers.tiny_bases import tiny_encoder

    scorer = open_scorer(tiny_encoder(tmp_path / "encoder"))
    together = scorer.margins(QUERY, TEXTS)
    assert together == pytest.approx([scorer.margins(QUERY, [text])[0] for text in TEXTS], abs=1e-5)
    assert scorer.generate(QUERY, TEXTS[0]) == ("", False)
