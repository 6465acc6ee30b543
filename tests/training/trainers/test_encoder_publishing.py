"""A tuned encoder is published so that CrossEncoder gives the same score; bases that are none are refused."""

import json
import math

import pytest

torch = pytest.importorskip("torch")

from corpus.errors import BadInput  # noqa: E402
from tests.published import PAIRS, by_cross_encoder, scores_by_cross_encoder  # noqa: E402
from tests.tiny_models import dev_rows  # noqa: E402
from tests.training.jobs.test_training_gains import first_stage  # noqa: E402
from training.published.encoder import EncoderTrained, load_encoder, longest_input  # noqa: E402
from training.published.publication import Record  # noqa: E402
from training.published.tiny_bases import tiny_encoder  # noqa: E402
from training.recipes.calibration import Calibration  # noqa: E402
from training.recipes.data import Example  # noqa: E402
from training.trainers.finishing import finish_training  # noqa: E402


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A tiny encoder with other weights than its base, published."""
    folder = tmp_path_factory.mktemp("encoder")
    base, tuned = tiny_encoder(folder / "base"), tiny_encoder(folder / "tuned", seed=9)
    one = EncoderTrained(base, tuned, max_length=64)
    record = Record("encoder", "cross-encoder", "base", {}, {}, Calibration(), max_length=64, tiny=True)
    outcome = finish_training(folder / "out", one, dev_rows(), record, report=lambda phase: None)
    return folder / "out", tuned, outcome


def test_cross_encoder_gives_the_score_that_we_give(published):
    out, tuned, _ = published
    one = EncoderTrained(tuned, tuned, max_length=64)
    ours = one.trained_margins([Example(query, document) for query, document in PAIRS])
    assert by_cross_encoder(out) == pytest.approx(ours, abs=1e-5)
    assert scores_by_cross_encoder(out) == pytest.approx([1 / (1 + math.exp(-m)) for m in ours], abs=1e-5)


def test_there_is_no_adapter_and_base_differs_from_the_published_model(published):
    _, _, outcome = published
    assert outcome.evaluation["adapter"] is None
    assert outcome.evaluation["base"]["label_pearson"] != outcome.evaluation["merged"]["label_pearson"]
    assert outcome.merge_difference <= 1e-5


def test_a_base_without_a_head_gets_a_seeded_one(tmp_path):
    from transformers import AutoModel

    base = tiny_encoder(tmp_path / "base")
    AutoModel.from_pretrained(base).save_pretrained(tmp_path / "bare")
    one, other, third = (load_encoder(tmp_path / "bare", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.classifier.weight, other.classifier.weight)
    assert not torch.equal(one.classifier.weight, third.classifier.weight)


def test_the_card_has_the_first_stage_beside_a_base_whose_head_is_random(tmp_path):
    from transformers import AutoModel, AutoTokenizer

    base, tuned = tiny_encoder(tmp_path / "base"), tiny_encoder(tmp_path / "tuned", seed=9)
    for loader in (AutoModel, AutoTokenizer):
        loader.from_pretrained(base).save_pretrained(tmp_path / "bare")
    one = EncoderTrained(tmp_path / "bare", tuned, max_length=64)
    assert one.random_head and not EncoderTrained(base, tuned, max_length=64).random_head
    rows = dev_rows(10)
    stage = first_stage(10, {"d0": 1, "d1": 0})
    record = Record("encoder", "cross-encoder", "base", {}, {}, Calibration(), max_length=64, tiny=True)
    outcome = finish_training(tmp_path / "out", one, rows, record, report=lambda phase: None, first_stage=stage)
    assert outcome.gain["random_head"] and outcome.gain["first_stage"]["mean"] == 1.0 and not outcome.gain["shown"]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| measure | random head | merged |" in card and "| base (random head) |" in card
    assert "20 documents of BM25" in card and "10 queries" in card and "| BM25 | 1.0000 | 1.0000 |" in card
    assert "| this model - BM25 | nDCG@10 |" in card and outcome.gain["words"] in card
    kept = json.loads((tmp_path / "out" / "reranker.json").read_text())
    assert kept["rankings"] == outcome.rankings and "per_query" not in kept["rankings"]
    assert len(kept["fixture"]) == 5


def test_causal_models_and_classifiers_of_three_labels_are_refused(tmp_path):
    from transformers import BertConfig, BertForSequenceClassification, Qwen3Config, Qwen3ForCausalLM

    small = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    Qwen3ForCausalLM(Qwen3Config(**small, num_attention_heads=2, num_key_value_heads=1, head_dim=8)).save_pretrained(
        tmp_path / "causal"
    )
    with pytest.raises(BadInput, match=r"causal model .*prism"):
        load_encoder(tmp_path / "causal")
    config = BertConfig(**small, num_attention_heads=2)
    config.num_labels = 3
    BertForSequenceClassification(config).save_pretrained(tmp_path / "three")
    with pytest.raises(BadInput, match="into 3 labels"):
        load_encoder(tmp_path / "three")


def test_the_longest_input_is_what_everybody_allows(tmp_path):
    from transformers import AutoTokenizer

    base = tiny_encoder(tmp_path / "base", max_length=128)
    tokenizer = AutoTokenizer.from_pretrained(base)
    assert longest_input(base, tokenizer) == 128 and longest_input(base, tokenizer, 32) == 32


def test_the_tiny_encoder_is_the_same_at_every_run(tmp_path):
    one, other = tiny_encoder(tmp_path / "one"), tiny_encoder(tmp_path / "other")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_the_tiny_encoder_is_a_base_by_its_name_for_training_and_for_scoring(tmp_path):
    from training.published.base import find_base
    from training.published.opening import open_scorer

    scorer = open_scorer(find_base("tiny:encoder", tmp_path))
    assert scorer.words == "tiny model, CPU" and len(scorer.margins("query", ["one", "two"])) == 2
