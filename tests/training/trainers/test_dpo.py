"""Exported preferences train TRL's DPO as they are."""

import math

import pytest

torch, datasets = pytest.importorskip("torch"), pytest.importorskip("datasets")

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl.trainer.dpo_config import DPOConfig  # noqa: E402
from trl.trainer.dpo_trainer import DPOTrainer  # noqa: E402

from tests.comparing_scene import draw, make_relevant, prefer  # noqa: E402
from tests.factories import make_collection, make_member  # noqa: E402
from tests.judged_books import export  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402

torch.set_num_threads(1)


@pytest.mark.django_db
def test_the_export_of_preferences_trains_one_step_of_dpo(tmp_path):
    books = make_collection("books", grades=3)
    make_relevant(books, queries=6, documents=2)
    alice = make_member(books, "alice").assessor
    for comparison in draw(books, people=1).comparisons.all():
        prefer(comparison, alice, "first" if comparison.seq % 2 else "second")
    export(books, "preferences", tmp_path / "out", split=1)

    rows = datasets.load_dataset(
        "json", data_files=str(tmp_path / "out" / "train.jsonl"), cache_dir=str(tmp_path / "cache")
    )
    base = tiny_base(tmp_path / "base", hidden=32)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    before = {name: weights.detach().clone() for name, weights in model.named_parameters()}
    arguments = DPOConfig(
        output_dir=str(tmp_path / "dpo"), max_steps=1, per_device_train_batch_size=4, learning_rate=1e-3,
        max_length=256, use_cpu=True, bf16=False, activation_checkpointing=False, report_to=[], save_strategy="no",
    )  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(base)
    trainer = DPOTrainer(model=model, args=arguments, train_dataset=rows["train"], processing_class=tokenizer)
    outcome = trainer.train()
    # Before the first step, the policy is its own reference: the loss is that of a coin.
    assert outcome.global_step == 1 and outcome.training_loss == pytest.approx(math.log(2), abs=1e-3)
    assert any(not torch.equal(weights.detach(), before[name]) for name, weights in model.named_parameters())
