"""Publishing: merged scores as the adapter, others' libraries score as we do, and a tampered merge is refused."""

import gc
import json
import math
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from corpus.errors import BadInput
from tests.published import PAIRS, by_cross_encoder, by_transformers, scores_by_cross_encoder
from tests.tiny_models import adapter_of, dev_rows, tiny, with_vision
from tests.training.jobs.test_training_gains import first_stage
from training.published import publishing
from training.published.base import find_base
from training.published.causal import LoraTrained, load_causal
from training.published.encoder import EncoderTrained, load_encoder, longest_input
from training.published.margins import PromptTokens
from training.published.opening import open_scorer
from training.published.publication import Record
from training.published.tiny_bases import tiny_encoder
from training.recipes.calibration import Calibration
from training.recipes.data import Example
from training.recipes.job_folder import JobFolder, write_folder
from training.recipes.rendering import QUORUM
from training.recipes.table import recipe_options
from training.trainers import training
from training.trainers.finishing import finish_training

LENGTH = 320


def silent(phase: str) -> None:
    """Nobody reads what finishing says."""


def trained(folder: Path, shape: str) -> LoraTrained:
    """A tiny base and an adapter with weights of its own, as training leaves them."""
    base, yes_id, no_id = tiny(folder / "base", shape)
    return LoraTrained(base, adapter_of(base, folder / "adapter"), PromptTokens(QUORUM.render, yes_id, no_id, LENGTH))


def record(one: LoraTrained) -> Record:
    """What the loop knows before publishing."""
    tokens = {"yes_id": one.prompt.yes_id, "no_id": one.prompt.no_id, "max_length": LENGTH}
    made = ("causal", "prism", "/somewhere/base", {"sft_reduction": "sum"}, {}, Calibration())
    return Record(*made, **tokens, tiny=True)


@pytest.fixture(scope="module", params=["qwen3", "qwen3.5"])
def published(request, tmp_path_factory):
    """A published folder of each shape, with what finishing said of it."""
    folder = tmp_path_factory.mktemp("publishing")
    one = trained(folder, request.param)
    out = folder / "out"
    return out, finish_training(out, one, dev_rows(), record(one), report=silent)


def test_base_adapter_and_merged_stand_side_by_side_in_files_without_a_path_of_this_machine(published):
    out, outcome = published
    found = json.loads((out / "reranker.json").read_text())
    assert found["evaluation"] == outcome.evaluation
    assert outcome.evaluation["base"]["auc"] != outcome.evaluation["adapter"]["auc"]
    for name, value in outcome.evaluation["adapter"].items():
        if isinstance(value, float):
            # Margins of a random model lie 1e-3 apart.
            assert outcome.evaluation["merged"][name] == pytest.approx(value, abs=0.02)
    assert 0 <= outcome.merge_difference <= 1e-4 and found["merge_difference"] == outcome.merge_difference
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    ours = {"README.md", "reranker.json", "modules.json"}
    ours |= {"config_sentence_transformers.json", "sentence_bert_config.json", "chat_template.jinja"}
    parts = ("config", "generation_config", "tokenizer", "tokenizer_config")
    assert names >= ours | {"model.safetensors", *(f"{part}.json" for part in parts)}
    config = json.loads((out / "config.json").read_text())
    if config["model_type"].startswith("qwen3_5"):
        assert config["mtp_num_hidden_layers"] == 0
    for name in names:
        if not name.startswith("adapter/") and name != "model.safetensors":
            assert str(out.parent) not in (out / name).read_text(), name
    assert not list(out.parent.glob("*.part")) and not list(out.parent.glob(".*"))


def test_other_libraries_score_as_we_do_with_instructions_and_cut_alike(published):
    out, _ = published
    plain, told = (by_transformers(out, PAIRS[:3], instruction) for instruction in ("", "Only code counts."))
    assert by_cross_encoder(out, PAIRS[:3], "Only code counts.") == pytest.approx(told, abs=1e-5)
    assert by_cross_encoder(out, PAIRS[:3]) == pytest.approx(plain, abs=1e-5) != pytest.approx(told, abs=1e-6)
    found = json.loads((out / "reranker.json").read_text())
    prompt = PromptTokens(QUORUM.render, found["yes_id"], found["no_id"], LENGTH)
    rows = [Example(query, document) for query, document in PAIRS]
    ours = prompt.margins(load_causal(out), AutoTokenizer.from_pretrained(out), rows)
    assert by_cross_encoder(out, PAIRS) == pytest.approx(ours, abs=3e-5)
    assert by_cross_encoder(out, PAIRS, batch=8) == pytest.approx(ours, abs=1e-4)
    assert scores_by_cross_encoder(out, PAIRS) == pytest.approx([1 / (1 + math.exp(-one)) for one in ours], abs=3e-5)
    rows = found["fixture"]
    short = [row for row in rows if row["query"] != "tides" and not row["instruction"]]
    margins = by_transformers(out, [(row["query"], row["document"]) for row in short])
    assert margins == pytest.approx([row["margin"] for row in short], abs=1e-4)


def move_a_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("q_proj.weight"))
    weights[name][0] += 0.5
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def change_the_template(folder: Path) -> None:
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("Document", "Text"))


@pytest.mark.parametrize("tamper", [move_a_weight, change_the_template])
def test_a_folder_that_was_tampered_with_is_refused_and_leaves_nothing(tamper, tmp_path, monkeypatch):
    one = trained(tmp_path, "qwen3")
    honest = one.write
    monkeypatch.setattr(one, "write", lambda folder: (honest(folder), tamper(folder)))
    with pytest.raises(publishing.MergeDiffers):
        finish_training(tmp_path / "out", one, dev_rows(), record(one), report=silent)
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))


def test_a_failure_while_writing_leaves_nothing_and_scores_that_are_no_numbers_are_infinitely_far(tmp_path):
    with pytest.raises(OSError, match="no space"), write_folder(tmp_path / "out") as folder:
        (folder / "config.json").write_text("{}")
        raise OSError("no space left")
    assert not list(tmp_path.iterdir())
    assert publishing.greatest_difference([1.0, 2.0], [1.0, float("nan")]) == float("inf")
    assert publishing.greatest_difference([1.0], []) == float("inf")
    assert publishing.greatest_difference([1.0, -1.0], [1.5, -1.0]) == 0.5


def test_a_base_with_vision_is_published_as_the_text_model_that_was_trained(tmp_path):
    base, yes_id, no_id = with_vision(tmp_path / "base")
    one = LoraTrained(base, adapter_of(base, tmp_path / "adapter"), PromptTokens(QUORUM.render, yes_id, no_id, LENGTH))
    finish_training(tmp_path / "out", one, dev_rows(1), record(one), report=silent)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["model_type"], config["mtp_num_hidden_layers"]) == ("qwen3_5_text", 0)
    plain = by_transformers(tmp_path / "out", PAIRS[:2])
    assert by_cross_encoder(tmp_path / "out", PAIRS[:2]) == pytest.approx(plain, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_takes_half_the_room_in_several_files_within_its_own_tolerance(precision, tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "SHARD", "200KB")
    one = trained(tmp_path, "qwen3")
    asked = replace(record(one), options={"publish_precision": precision})
    outcome = finish_training(tmp_path / "out", one, dev_rows(1), asked, report=silent)
    files = list((tmp_path / "out").glob("model-*.safetensors"))
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert len(files) > 1 and config["dtype"] == {"bf16": "bfloat16", "fp16": "float16"}[precision]
    assert sum(path.stat().st_size for path in files) == pytest.approx(index["metadata"]["total_size"], rel=0.05)
    assert 1e-4 < outcome.merge_difference <= publishing.TOLERANCES[precision]
    with pytest.raises(publishing.MergeDiffers, match=r"1e-04 in fp32"):
        publishing.check_merge([0.0], [outcome.merge_difference])


@pytest.mark.slow
def test_the_trained_model_is_gone_before_the_published_one_is_read(tmp_path):
    """Two copies in fp32 at once would not fit where one just does."""
    one = trained(tmp_path, "qwen3")
    model = weakref.ref(one.model.get_base_model())
    (tmp_path / "out").mkdir()
    one.write(tmp_path / "out")
    gc.collect()
    assert model() is None


@pytest.mark.slow
def test_what_does_not_fit_on_the_gpu_is_published_on_the_cpu(tmp_path, monkeypatch):
    """No GPU is needed: the device is a word here, and the error is torch's own, raised by the test."""
    one = trained(tmp_path, "qwen3")
    rows = SimpleNamespace(collection="made", sha256="0" * 64, teacher="votes", dev=dev_rows(1), manifest={})
    task = SimpleNamespace(
        device="cuda", recipe="prism", base=tmp_path / "base", base_name="base", data=rows, tiny=True,
        options=recipe_options("prism", {}),
    )  # fmt: skip
    recipe = SimpleNamespace(task=task, model=object(), tried=[])
    prompt = {"yes_id": one.prompt.yes_id, "no_id": one.prompt.no_id, "max_length": LENGTH}
    recipe.record = lambda: {"kind": "causal", **prompt}

    def open_trained(checkpoint):
        assert recipe.model is None
        recipe.tried.append(recipe.task.device)
        if recipe.task.device == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory (raised by the test)")
        return one

    recipe.trained = open_trained
    monkeypatch.setattr(training, "replace", lambda task, **changes: SimpleNamespace(**{**vars(task), **changes}))
    folder = JobFolder(tmp_path)
    folder.append_metrics({"step": 1, "steps": 1, "loss": 1.0})
    published = training.publish_model(folder, recipe, tmp_path / "out", 1, "the last one")
    assert recipe.tried == ["cuda", "cpu"] and published.merge_difference <= 1e-4
    assert (tmp_path / "out" / "reranker.json").exists()


ENCODER = Record("encoder", "cross-encoder", "base", {}, {}, Calibration(), max_length=64, tiny=True)


@pytest.fixture(scope="module")
def published_encoder(tmp_path_factory):
    """A tiny encoder with other weights than its base, published."""
    folder = tmp_path_factory.mktemp("encoder")
    base, tuned = tiny_encoder(folder / "base"), tiny_encoder(folder / "tuned", seed=9)
    one = EncoderTrained(base, tuned, max_length=64)
    outcome = finish_training(folder / "out", one, dev_rows(), ENCODER, report=silent)
    return folder / "out", tuned, outcome


def test_cross_encoder_gives_the_score_that_we_give_of_a_model_without_adapter(published_encoder):
    out, tuned, outcome = published_encoder
    one = EncoderTrained(tuned, tuned, max_length=64)
    ours = one.trained_margins([Example(query, document) for query, document in PAIRS])
    assert by_cross_encoder(out) == pytest.approx(ours, abs=1e-5)
    assert scores_by_cross_encoder(out) == pytest.approx([1 / (1 + math.exp(-m)) for m in ours], abs=1e-5)
    assert outcome.evaluation["adapter"] is None
    assert outcome.evaluation["base"]["label_pearson"] != outcome.evaluation["merged"]["label_pearson"]
    assert outcome.merge_difference <= 1e-5


def test_the_card_has_the_first_stage_beside_a_base_whose_head_is_random(tmp_path):
    base, tuned = tiny_encoder(tmp_path / "base"), tiny_encoder(tmp_path / "tuned", seed=9)
    for loader in (AutoModel, AutoTokenizer):
        loader.from_pretrained(base).save_pretrained(tmp_path / "bare")
    one = EncoderTrained(tmp_path / "bare", tuned, max_length=64)
    heads = [load_encoder(tmp_path / "bare", seed=seed).classifier.weight for seed in (1, 1, 2)]
    assert torch.equal(*heads[:2]) and not torch.equal(*heads[1:]), "a base without a head gets a seeded one"
    assert one.random_head and not EncoderTrained(base, tuned, max_length=64).random_head
    rows = dev_rows(10)
    stage = first_stage(10, {"d0": 1, "d1": 0})
    outcome = finish_training(tmp_path / "out", one, rows, ENCODER, report=silent, first_stage=stage)
    assert outcome.gain["random_head"] and outcome.gain["first_stage"]["mean"] == 1.0 and not outcome.gain["shown"]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| measure | random head | merged |" in card and "| base (random head) |" in card
    assert "20 documents of BM25" in card and "10 queries" in card and "| BM25 | 1.0000 | 1.0000 |" in card
    assert "| this model - BM25 | nDCG@10 |" in card and outcome.gain["words"] in card
    kept = json.loads((tmp_path / "out" / "reranker.json").read_text())
    assert kept["rankings"] == outcome.rankings and "per_query" not in kept["rankings"]
    assert len(kept["fixture"]) == 5


def test_causal_models_and_classifiers_of_three_labels_are_refused(tmp_path):
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


def test_the_tiny_encoder_is_the_same_at_every_run_and_a_base_by_its_name(tmp_path):
    one, other = tiny_encoder(tmp_path / "one"), tiny_encoder(tmp_path / "other")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    base = tiny_encoder(tmp_path / "base", max_length=128)
    tokenizer = AutoTokenizer.from_pretrained(base)
    assert longest_input(base, tokenizer) == 128 and longest_input(base, tokenizer, 32) == 32
    scorer = open_scorer(find_base("tiny:encoder", tmp_path))
    assert scorer.words == "tiny model, CPU" and len(scorer.margins("query", ["one", "two"])) == 2
