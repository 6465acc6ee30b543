"""Publishing: merged scores as the adapter, others' libraries score as we do, and a tampered merge is refused."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file, save_file  # noqa: E402

from tests.published import PAIRS, by_cross_encoder, by_transformers, scores_by_cross_encoder  # noqa: E402
from tests.tiny_models import adapter_of, dev_rows, tiny, with_vision  # noqa: E402
from training.published import publishing  # noqa: E402
from training.published.causal import LoraTrained  # noqa: E402
from training.published.margins import PromptTokens  # noqa: E402
from training.published.publication import Record  # noqa: E402
from training.recipes.calibration import Calibration  # noqa: E402
from training.recipes.data import Example  # noqa: E402
from training.recipes.job_folder import write_folder  # noqa: E402
from training.recipes.rendering import QUORUM  # noqa: E402
from training.recipes.table import recipe_options  # noqa: E402
from training.trainers.finishing import finish_training  # noqa: E402

LENGTH = 320


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
    return out, finish_training(out, one, dev_rows(), record(one), report=lambda phase: None)


def test_base_adapter_and_merged_stand_side_by_side(published):
    out, outcome = published
    found = json.loads((out / "reranker.json").read_text())
    assert found["evaluation"] == outcome.evaluation
    assert outcome.evaluation["base"]["auc"] != outcome.evaluation["adapter"]["auc"]
    for name, value in outcome.evaluation["adapter"].items():
        if isinstance(value, float):
            # Margins of a random model lie 1e-3 apart.
            assert outcome.evaluation["merged"][name] == pytest.approx(value, abs=0.02)
    assert 0 <= outcome.merge_difference <= 1e-4 and found["merge_difference"] == outcome.merge_difference


def test_the_instruction_is_cross_encoders_prompt(published):
    out, _ = published
    plain, told = (by_transformers(out, PAIRS[:3], instruction) for instruction in ("", "Only code counts."))
    assert by_cross_encoder(out, PAIRS[:3], "Only code counts.") == pytest.approx(told, abs=1e-5)
    assert by_cross_encoder(out, PAIRS[:3]) == pytest.approx(plain, abs=1e-5) != pytest.approx(told, abs=1e-6)


def test_too_long_documents_are_cut_alike_and_the_end_of_the_prompt_stays(published):
    from transformers import AutoTokenizer

    from training.published.causal import load_causal

    out, _ = published
    found = json.loads((out / "reranker.json").read_text())
    prompt = PromptTokens(QUORUM.render, found["yes_id"], found["no_id"], LENGTH)
    rows = [Example(query, document) for query, document in PAIRS]
    ours = prompt.margins(load_causal(out), AutoTokenizer.from_pretrained(out), rows)
    assert by_cross_encoder(out, PAIRS) == pytest.approx(ours, abs=3e-5)
    assert by_cross_encoder(out, PAIRS, batch=8) == pytest.approx(ours, abs=1e-4)
    assert scores_by_cross_encoder(out, PAIRS) == pytest.approx([1 / (1 + math.exp(-one)) for one in ours], abs=3e-5)


def test_the_folder_has_the_files_of_formats_and_no_path_of_this_machine(published):
    out, _ = published
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert names >= {
        "config.json",
        "model.safetensors",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "README.md",
        "reranker.json",
        "modules.json",
        "config_sentence_transformers.json",
        "sentence_bert_config.json",
    }
    config = json.loads((out / "config.json").read_text())
    if config["model_type"].startswith("qwen3_5"):
        assert config["mtp_num_hidden_layers"] == 0
    for name in names:
        if not name.startswith("adapter/") and name != "model.safetensors":
            assert str(out.parent) not in (out / name).read_text(), name
    assert not list(out.parent.glob("*.part")) and not list(out.parent.glob(".*"))


def test_the_fixture_in_reranker_json_can_be_scored_again(published):
    out, _ = published
    rows = json.loads((out / "reranker.json").read_text())["fixture"]
    short = [row for row in rows if row["query"] != "tides" and not row["instruction"]]
    found = by_transformers(out, [(row["query"], row["document"]) for row in short])
    assert found == pytest.approx([row["margin"] for row in short], abs=1e-4)


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
        finish_training(tmp_path / "out", one, dev_rows(), record(one), report=lambda phase: None)
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))


def test_scores_that_are_no_numbers_are_infinitely_far():
    assert publishing.greatest_difference([1.0, 2.0], [1.0, float("nan")]) == float("inf")
    assert publishing.greatest_difference([1.0], []) == float("inf")
    assert publishing.greatest_difference([1.0, -1.0], [1.5, -1.0]) == 0.5


def test_a_failure_while_writing_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="no space"), write_folder(tmp_path / "out") as folder:
        (folder / "config.json").write_text("{}")
        raise OSError("no space left")
    assert not list(tmp_path.iterdir())


def test_a_base_with_vision_is_published_as_the_text_model_that_was_trained(tmp_path):
    base, yes_id, no_id = with_vision(tmp_path / "base")
    one = LoraTrained(base, adapter_of(base, tmp_path / "adapter"), PromptTokens(QUORUM.render, yes_id, no_id, LENGTH))
    finish_training(tmp_path / "out", one, dev_rows(1), record(one), report=lambda phase: None)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["model_type"], config["mtp_num_hidden_layers"]) == ("qwen3_5_text", 0)
    plain = by_transformers(tmp_path / "out", PAIRS[:2])
    assert by_cross_encoder(tmp_path / "out", PAIRS[:2]) == pytest.approx(plain, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", pytest.param("fp16", marks=pytest.mark.slow)])
def test_half_precision_takes_half_the_room_in_several_files_within_its_own_tolerance(precision, tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "SHARD", "200KB")
    one = trained(tmp_path, "qwen3")
    asked = replace(record(one), options={"publish_precision": precision})
    outcome = finish_training(tmp_path / "out", one, dev_rows(1), asked, report=lambda phase: None)
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
    import gc
    import weakref

    one = trained(tmp_path, "qwen3")
    model = weakref.ref(one.model.get_base_model())
    (tmp_path / "out").mkdir()
    one.write(tmp_path / "out")
    gc.collect()
    assert model() is None


@pytest.mark.slow
def test_what_does_not_fit_on_the_gpu_is_published_on_the_cpu(tmp_path, monkeypatch):
    """No GPU is needed: the device is a word here, and the error is torch's own, raised by the test."""
    from types import SimpleNamespace

    from training.recipes.job_folder import JobFolder
    from training.trainers import training

    one = trained(tmp_path, "qwen3")
    task = SimpleNamespace(device="cuda", recipe="prism", base_name="base", options=recipe_options("prism", {}))
    task.base = tmp_path / "base"
    task.data = SimpleNamespace(collection="made", sha256="0" * 64, teacher="votes", dev=dev_rows(1), manifest={})
    task.tiny = True
    recipe = SimpleNamespace(task=task, model=object(), tried=[])
    known = {"kind": "causal", "yes_id": one.prompt.yes_id, "no_id": one.prompt.no_id, "max_length": LENGTH}
    recipe.record = lambda: known

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
    record_ = training.publish_model(folder, recipe, tmp_path / "out", 1, "the last one")
    assert recipe.tried == ["cuda", "cpu"] and record_.merge_difference <= 1e-4
    assert (tmp_path / "out" / "reranker.json").exists()
