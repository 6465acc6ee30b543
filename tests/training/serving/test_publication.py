"""What a published folder says of its model: the chat template, reranker.json, the card, without paths or times."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.published.publication import (
    Record,
    as_text,
    base_name,
    chat_template,
    model_card,
    model_title,
    name_base,
    reranker_json,
    sentence_transformers_files,
)
from training.recipes.calibration import Calibration

MEASURES = {
    "label_pearson": 0.5, "teacher_pearson": None, "auc": 0.75, "accuracy": 0.6, "accuracy_at_threshold": 0.7,
    "ndcg@10": 0.8, "reasons": {"teacher_pearson": "fewer than two rows carry both values"},
}  # fmt: skip


def record(**changes):
    """A record of a tiny model trained on the CPU."""
    fields = {
        "kind": "causal", "recipe": "prism", "base": "/home/alice/var/bases/tiny-qwen3", "tiny": True, "steps": 20,
        "options": {"sft_reduction": "sum", "lr": 1e-5}, "dataset": "python-reference", "dataset_sha256": "ab" * 32,
        "evaluation": {"base": MEASURES | {"auc": 0.25}, "adapter": MEASURES, "merged": MEASURES}, "teacher": "votes",
        "calibration": Calibration(reason="the dev split is too small: 3 relevant and 4 not"), "prompt": "<Query>",
        "prompt_sha256": "cd" * 32, "yes_id": 7, "no_id": 9, "merge_difference": 3e-7,
        "checkpoint": {"step": 20, "words": "best mean rank (1.00) over auc"},
        "gain": {"words": "no gain shown: p = 0.4 (nDCG@10 +0.010 over 30 queries)"},
    }  # fmt: skip
    return Record(**(fields | changes))


def prompt(query, document, instruction):
    """A prompt with quotes, braces and backslashes around its three parts."""
    order = instruction or 'Judge {{ this }} "well" \\n é 🙂 {% if %}'
    return f"<|im_start|>system\n{order}<|im_end|>\n<Query>: {query}\n<Document>: {document}<|im_end|>\n\n"


def rendered(template, query, document, instruction):
    """As transformers renders a chat template."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    messages = [{"role": "system", "content": instruction}] if instruction else []
    messages += [{"role": "query", "content": query}, {"role": "document", "content": document}]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(messages=messages)


@given(st.text(), st.text(), st.text())
def test_the_chat_template_gives_the_prompt_byte_for_byte(query, document, instruction):
    assert rendered(chat_template(prompt), query, document, instruction) == prompt(query, document, instruction)


def test_a_prompt_without_instruction_needs_no_branch_and_one_that_loses_or_repeats_the_document_is_refused():
    template = chat_template(lambda query, document, _: f"{query} | {document}\n")
    assert "{% if" not in template and rendered(template, "a", "b", "") == "a | b\n"
    with pytest.raises(ValueError, match="document exactly once"):
        chat_template(lambda query, document, instruction: query + instruction)
    with pytest.raises(ValueError, match="query exactly once"):
        chat_template(lambda query, document, instruction: query + query + document)


def test_card_and_reranker_json_say_what_the_model_is_and_how_it_was_made():
    text = model_card(record(), "my-reranker")
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    assert "pipeline_tag: text-ranking" in front and 'base_model: "tiny-qwen3"' in front
    assert '- "python-reference"' in front and "- prism" in front and "- tiny" in front
    for words in (
        "# my-reranker", "**tiny model, CPU**", "| measure | base | adapter | merged |", "bf16", "ab" * 32, "cd" * 32,
        "| AUC | 0.2500 | 0.7500 | 0.7500 |", "| Pearson with the teacher | not defined | not defined | not defined |",
        "no gain shown: p = 0.4", "Checkpoint: step 20, best mean rank", "| sft_reduction | sum |",
        "| teacher | votes |", "Not calibrated, threshold 0.5: the dev split is too small",
    ):  # fmt: skip
        assert words in body, words
    assert "/home" not in text
    found = json.loads(as_text(reranker_json(record())))
    assert found["prompt_sha256"] == "cd" * 32 and (found["yes_id"], found["no_id"]) == (7, 9)
    assert found["threshold"] == 0.5 and found["calibration"]["a"] == 1.0 and found["words"] == "tiny model, CPU"
    assert found["base"] == "tiny-qwen3" and found["evaluation"]["base"]["auc"] == 0.25


def test_the_card_of_a_calibrated_model_gives_the_line_and_that_of_an_encoder_no_adapter():
    text = model_card(record(calibration=Calibration(2.0, -1.0, 0.7, 0.9, 30, 40), tiny=False, device="cuda"), "m")
    assert "probability = sigmoid(2 x margin + -1)" in text and "above 0.7000 (margin 0.9000)" in text
    assert "tiny model" not in text and "- tiny" not in text and "CPU" not in text
    one = record(kind="encoder", evaluation={"base": MEASURES, "adapter": None, "merged": MEASURES}, options={})
    text = model_card(one, "m")
    assert "| measure | base | merged |" in text and "sft_reduction" not in text and "apply_chat_template" not in text
    files = sentence_transformers_files("encoder", None, None, {})
    assert set(files) == {"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/srv/all-MiniLM-L6-v2/model", "all-MiniLM-L6-v2"),
        ("/srv/mine/checkpoint-400", "mine"),
        ("/srv/mine/final_model/", "mine"),
        ("/home/a/hub/models--owner--all-MiniLM-L6-v2/snapshots/c9745ed1", "owner/all-MiniLM-L6-v2"),
        ("/model", "model"),
        ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("./models/tiny/", "tiny"),
    ],
)
def test_a_base_is_named_by_its_hub_id_or_its_folder_and_one_called_model_by_what_it_lies_in(folder, name):
    assert base_name(folder) == name
    assert f"base_model: {json.dumps(name)}" in model_card(record(base=folder), "mine")


def test_the_card_says_what_named_a_base_and_a_folder_called_model_is_named_by_its_own_card(tmp_path):
    folder = tmp_path / "wheel" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"_name_or_path": "someone/what-it-was-made-of"}')
    assert name_base(str(folder), folder) == ("wheel", "the folder that it lies in")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# all-MiniLM-L6-v2\nText.\n# Later\n")
    name, source = name_base(str(folder), folder)
    card = model_card(record(base=name, base_source=source), "mine")
    assert 'base_model: "all-MiniLM-L6-v2"' in card and "| base | all-MiniLM-L6-v2, named by its model card |" in card
    assert name_base("Qwen/Qwen3-0.6B", folder) == ("Qwen/Qwen3-0.6B", "its id")
    assert name_base(str(folder.parent), folder.parent) == ("wheel", "its folder")
    assert model_title("0f" * 16, record(base="tiny:qwen3")) == "tiny-qwen3-prism"
    assert model_title("my-reranker", record()) == "my-reranker"


def test_the_card_of_an_embedding_model_claims_no_reranker():
    made = {"dimensions": 64, "pooling": "last", "query_prefix": "Instruct: x\nQuery:", "temperature": 0.02}
    fitted = Calibration(a=2.0, b=-1.0, threshold=0.4, threshold_margin=0.3)
    card = model_card(record(kind="embedder", recipe="rtriever", embedder=made, calibration=fitted), "finder")
    assert "embedding model, tuned from `tiny-qwen3`" in card and 'encode(["a query"], prompt_name="query")' in card
    assert "64 numbers (pooling: last)" in card and "nDCG@10 | 0.8" in card
    assert not {"CrossEncoder", "reranker", "threshold", "text-ranking"}.intersection(re.findall(r"[\w-]+", card))
