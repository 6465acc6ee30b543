"""Recipe erank-sft: its data, its prompt, its rows as tokens, and a loss equal to a plain loop's."""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from corpus.errors import BadInput  # noqa: E402
from corpus.rubric import HELPFULNESS  # noqa: E402
from judges.domain.chains import render_answer  # noqa: E402
from tests.training.trainers.scored import CHAINS, export_scores  # noqa: E402
from tests.training_sets import ask  # noqa: E402
from training.erank.sft import ErankSft, encode_chain, split_step  # noqa: E402
from training.published.base import load_tokenizer  # noqa: E402
from training.published.causal import load_causal  # noqa: E402
from training.published.chains import ChainPrompt, measure_answers, score_positions  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402
from training.published.tokens import EncodedRow  # noqa: E402
from training.recipes import erank_prompt  # noqa: E402
from training.recipes.erank_data import ScoredExample, group_by_query, read_erank_set  # noqa: E402
from training.recipes.table import recipe_options  # noqa: E402
from training.trainers.training import prepare_task  # noqa: E402


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    torch.set_num_threads(1)
    return tiny_base(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def tokenizer(base):
    return load_tokenizer(base)


LONG = ScoredExample("what is it", "word " * 900, "A rule.", 1, 0.9, "", "q", "d", score=9, chain="It says so.")


def test_a_set_is_read_with_its_scores_and_chains(tmp_path):
    found = read_erank_set(export_scores(tmp_path / "set", queries=2, dev=1))
    first = found.train[0]
    assert isinstance(first, ScoredExample)
    assert (first.label, first.teacher, first.score, first.chain) == (1, 0.9, 9, CHAINS[1])
    assert (len(found.train), len(found.dev), found.teacher, len(found.sha256)) == (6, 3, "scores", 64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": 11}, "score 11 is not a whole number from 0 to 10"),
        ({"score": 7.5}, "score 7.5 is not"),
        ({"score": None}, "score None is not"),
        ({"score": True}, "score True is not"),
        ({"chain": ...}, "no field 'chain'"),
    ],
)
def test_a_row_that_is_none_is_refused_with_its_line(tmp_path, change, words):
    folder = export_scores(tmp_path / "set", queries=2, dev=0)
    rows = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    rows[2] = {key: value for key, value in (rows[2] | change).items() if value is not ...}
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "manifest.json").write_text('{"format": "erank-sft"}')
    with pytest.raises(BadInput, match=f"line 3: .*{words}"):
        read_erank_set(folder)


def test_only_queries_that_can_be_ranked_are_ranked():
    rows = [
        replace(LONG, query_id=query, label=label)
        for query, label in (("a", 1), ("a", 0), ("b", 0), ("b", 0), ("c", 1))
    ]
    whole, left = group_by_query(rows)
    assert list(whole) == ["a"] and left == 2


def test_the_prompt_has_one_definition_and_two_anchors_and_ends_before_the_chain():
    text = erank_prompt.render_chain_prompt("why", "because", "A rule of its own.")
    assert text.count("A rule of its own.") == 1 and HELPFULNESS.statement not in text
    assert text.count(" 0: the document") == text.count(" 10: the document") == 1
    assert text.endswith("because<|im_end|>\n<|im_start|>assistant\n")
    assert erank_prompt.render_chain_prompt("why", "because").count(HELPFULNESS.statement) == 1
    assert len(erank_prompt.chain_prompt_sha256()) == 64


def test_the_document_gives_way_and_never_the_answer(tokenizer):
    whole = encode_chain(LONG, tokenizer, 4000)
    cut = encode_chain(LONG, tokenizer, 300)
    assert whole.whole == len(whole.ids) and cut.whole > len(cut.ids) == 300
    for row in (whole, cut):
        text = tokenizer.decode(row.ids[row.start :])
        assert text == render_answer("It says so.", 9) + "<|im_end|>"
        assert tokenizer.decode(row.ids[: row.start]).endswith("<|im_start|>assistant\n")
    assert encode_chain(replace(LONG, chain="word " * 400), tokenizer, 300) is None


@pytest.mark.parametrize(("score", "text"), [(7, "7"), (10, "10"), (0, "0")])
def test_the_probability_is_the_product_over_the_score_s_tokens(base, tokenizer, score, text):
    model = load_causal(base)
    (prompt,) = ChainPrompt(400, 64).encode(tokenizer, [LONG])
    answer = tokenizer(render_answer("It says so.", score) + "<|im_end|>", add_special_tokens=False)["input_ids"]
    (found,) = measure_answers(model, tokenizer, [prompt], [answer])
    places = score_positions(tokenizer, answer, render_answer("It says so.", score), score)
    assert tokenizer.decode([answer[place] for place in places]) == text
    with torch.no_grad():
        shares = model(input_ids=torch.tensor([[*prompt.ids, *answer]])).logits[0].float().log_softmax(-1)
    expected = sum(shares[len(prompt.ids) + place - 1, answer[place]] for place in places).exp()
    assert found.probability == pytest.approx(float(expected), rel=1e-5)
    assert (found.score, found.ranking_score) == (score, score * found.probability)


def test_a_malformed_answer_ranks_below_every_score(base, tokenizer):
    answers = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("<think>a</think>", "7")]
    found = measure_answers(load_causal(base), tokenizer, [EncodedRow([1, 2])] * 2, answers)
    assert [(one.score, one.ranking_score) for one in found] == [(None, -1.0)] * 2


@pytest.mark.parametrize(
    ("rows", "longest", "budget", "expected"), [(128, 2048, 16384, (8, 16)), (6, 100, 450, (3, 2)), (5, 10, 1, (1, 5))]
)
def test_a_step_is_split_into_equal_passes(rows, longest, budget, expected):
    assert split_step(rows, longest, budget) == expected


def sft(tmp_path, **options):
    folder = ask(tmp_path, "erank-sft", export_scores(tmp_path / "data", queries=4, dev=0), "tiny:qwen3", **options)
    return folder, ErankSft(prepare_task(folder, folder.job))


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_loss_and_gradient_are_those_of_a_plain_loop(tmp_path, reduction):
    torch.set_num_threads(1)
    # Two passes of eight rows: one step over all rows, at a rate that changes nothing that could be seen.
    folder, recipe = sft(
        tmp_path, sft_reduction=reduction, batch=16, token_budget=8 * 384, max_steps=1, learning_rate=1e-12, clip=0.0,
        weight_decay=0.0,
    )  # fmt: skip
    rows, model = recipe.rows, recipe.model
    plain = load_causal(recipe.task.base).train()
    total, tokens = torch.zeros(()), 0
    for row in rows:
        logits = plain(input_ids=torch.tensor([row.ids])).logits[0]
        kept = slice(row.start - 1, len(row.ids) - 1)
        loss = torch.nn.functional.cross_entropy(logits[kept], torch.tensor(row.ids[row.start :]), reduction="sum")
        total, tokens = total + loss, tokens + len(row.ids) - row.start
    expected = total / (len(rows) if reduction == "sum" else tokens)
    expected.backward()
    gradients = {}

    def keep(name):
        return lambda gradient: gradients.__setitem__(name, gradients.get(name, 0) + gradient.detach().clone())

    for name, value in model.named_parameters():
        value.register_hook(keep(name))
    recipe.train(folder, lambda: False)
    (line,) = [line for line in folder.read_metrics() if "loss" in line]
    assert line["loss"] == pytest.approx(float(expected.detach()), rel=1e-6)
    for name, value in plain.named_parameters():
        assert torch.allclose(gradients[name], value.grad, atol=1e-5, rtol=1e-4), name


def test_rows_that_do_not_fit_are_counted(tmp_path):
    data = export_scores(tmp_path / "data", queries=4, dev=0)
    rows = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    rows[0]["chain"] = "word " * 400
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (data / "manifest.json").write_text('{"format": "erank-sft"}')
    folder = ask(tmp_path, "erank-sft", data, "tiny:qwen3", lora_rank=4)
    recipe = ErankSft(prepare_task(folder, folder.job))
    assert (recipe.dropped, len(recipe.rows)) == (1, 11)
    assert recipe.record()["notes"] == {"rows_dropped": 1}


def test_the_paper_s_defaults():
    paper = recipe_options("erank-sft", {})
    assert (paper.lora_rank, paper.lora_alpha, paper.learning_rate, paper.epochs) == (32, 64, 1e-4, 1.0)
    assert (paper.schedule, paper.warmup_ratio, paper.max_length, paper.batch) == ("cosine", 0.05, 2048, 128)
