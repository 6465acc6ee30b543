"""monoT5-style rerankers: P(true) at the decoder's first step; in `rerank`, in `retrieve`, on the page."""

from math import exp
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the training extra: make install-training")

from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402
from transformers import AutoTokenizer, T5ForConditionalGeneration  # noqa: E402

from annotation.models import Role  # noqa: E402
from benchmark.models import Run  # noqa: E402
from benchmark.runs import rankings  # noqa: E402
from corpus.errors import BadInput  # noqa: E402
from tests.called import call  # noqa: E402
from tests.factories import make_member  # noqa: E402
from tests.rankings import make_run, make_wings, work_on  # noqa: E402
from tests.tiny_models import seq2seq, sparse_encoder, tiny  # noqa: E402
from training.published.opening import open_scorer  # noqa: E402

TEXTS = ["a wing has lift", "heat flows through a plate", "a plate has names"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seq2seq(tmp_path_factory.mktemp("t5") / "mono")


@pytest.fixture
def wings(db: None) -> Any:
    wings = make_wings(TEXTS, ["wing lift", "names"])
    make_run(wings, "first", {"q0": ["d2", "d1", "d0"], "q1": ["d0", "d1", "d2"]})
    return wings


def probability_by_hand(model: Path, query: str, document: str, words: tuple[str, str]) -> float:
    """Softmax over two words of the vocabulary, of what the decoder would write first."""
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    ids = tokenizer(f"Query: {query} Document: {document} Relevant:", return_tensors="pt")
    assert ids["input_ids"][0, -1] == tokenizer.eos_token_id
    start = torch.tensor([[tokenizer.pad_token_id]])  # T5's decoder begins with it.
    with torch.inference_mode():
        logits = T5ForConditionalGeneration.from_pretrained(model)(**ids, decoder_input_ids=start).logits[0, 0]
    true, false = (tokenizer.convert_tokens_to_ids(word) for word in words)
    return float(torch.softmax(logits[[true, false]], dim=0)[0])


@pytest.mark.parametrize(("prompt", "words"), [("monot5", ("true", "false")), ("mmonot5", ("yes", "no"))])
def test_the_margins_sigmoid_is_p_true_by_hand(model: Path, prompt: str, words: tuple[str, str]) -> None:
    scorer = open_scorer(model, prompt=prompt)
    margins = scorer.margins("wing lift", TEXTS)
    by_hand = [probability_by_hand(model, "wing lift", text, words) for text in TEXTS]
    assert [1 / (1 + exp(-one)) for one in margins] == pytest.approx(by_hand, abs=1e-6)
    assert len({round(one, 6) for one in by_hand}) == 3, "all pairs score alike: the test says nothing"
    assert scorer.margins("wing lift", TEXTS, together=2) == pytest.approx(margins, abs=1e-5)


def test_a_long_document_loses_its_end_and_the_prompt_keeps_its_own(model: Path) -> None:
    from training.published.protocol import ServingRequest

    scorer = open_scorer(model, prompt="monot5")
    short, long = scorer.encode(ServingRequest("wing", [TEXTS[0], "heat " * 600]))
    assert (short.is_cut, long.is_cut, len(long.ids)) == (False, True, 512)
    assert long.ids[-3:] == short.ids[-3:]  # "Relevant", ":" and the end.


def test_without_its_prompt_it_is_refused_and_so_is_a_prompt_of_other_models(model: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"sequence-to-sequence .* mmonot5"):
        open_scorer(model)
    with pytest.raises(BadInput, match="monot5 or mmonot5"):
        open_scorer(model, prompt="prism")
    causal = tiny(tmp_path / "causal", "qwen3")[0]
    from training.published.scorer import check_prompt

    with pytest.raises(BadInput, match=r"causal .* quorum: "):
        check_prompt(causal, "monot5")


@pytest.mark.django_db(transaction=True)
def test_the_rerank_command_scores_in_batches(model: Path, wings: Any, tmp_path: Path) -> None:
    ranking, out = tmp_path / "first.run", tmp_path / "out.run"
    ranking.write_text("".join(f"q0 Q0 d{place} {place + 1} {3 - place} x\n" for place in range(3)))
    given = ("rerank", "--model", model, "--run", ranking, "--collection", "wings", "--out", out)
    assert "monot5 or mmonot5" in call(*given).err
    assert call(*given, "--prompt", "monot5", "--batch-size", "0").code == 2
    done = call(*given, "--prompt", "monot5", "--batch-size", "2")
    assert done.code == 0, done.err
    found = {line.split()[2]: float(line.split()[4]) for line in out.read_text().splitlines()}
    wanted = open_scorer(model, prompt="monot5").margins("wing lift", TEXTS)
    assert [found[f"d{place}"] for place in range(3)] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.django_db(transaction=True)
def test_a_run_is_reranked_stopped_and_continued(model: Path, wings: Any) -> None:
    given = ("retrieve", "wings", "--run", "first", "--model", model)
    assert "monot5 or mmonot5" in call(*given).err and Run.objects.count() == 1
    done = call(*given, "--prompt", "monot5", "--top", "2", "--batch-size", "1")
    assert done.code == 0, done.err
    run = Run.objects.get(name="first+mono")
    asked = iter([False, True])
    assert len(rankings.as_run(work_on(run, lambda: next(asked, True)))) == 1, "it was not stopped between two queries"
    kept = rankings.as_run(run)["q0"]
    run = work_on(run)
    assert (run.kind, run.state, run.error) == ("rerank-folder", "ready", "")
    found, scorer = rankings.as_run(run), open_scorer(model, prompt="monot5")
    assert found["q0"] == kept and set(found["q0"]) == {"d2", "d1"} and set(found["q1"]) == {"d0", "d1"}
    wanted = scorer.margins("wing lift", [TEXTS[2], TEXTS[1]])
    assert [kept["d2"], kept["d1"]] == pytest.approx(wanted, abs=1e-5)
    assert "already has a run" in call(*given, "--prompt", "mmonot5").err


@pytest.mark.django_db(transaction=True)
def test_the_page_offers_what_lies_among_the_base_models(
    model: Path, wings: Any, tmp_path: Path, settings: Any
) -> None:
    client = Client()
    client.force_login(make_member(wings, "alice", Role.ADMIN).user)
    address, settings.BASE_MODELS = reverse("make_run", args=["wings"]), tmp_path / "bases"
    assert "No model folder" in client.get(address, {"type": "sparse"}).content.decode()
    seq2seq(settings.BASE_MODELS / "mono")
    sparse_encoder(tmp_path / "made").rename(settings.BASE_MODELS / "splade")
    shown = client.get(address, {"type": "sparse"}).content.decode()
    assert '<option value="splade">' in shown and '<option value="mono">' not in shown
    shown = client.get(address, {"type": "rerank-folder"}).content.decode()
    assert '<option value="mono">' in shown and '<option value="splade">' not in shown
    common = {"depth": 3, "batch_size": 2, "run": "first", "top": 2, "model": "mono"}
    refused = client.post(f"{address}?type=rerank-folder", {**common, "name": "a"})
    assert refused.status_code == 422 and "monot5 or mmonot5" in refused.content.decode()
    elsewhere = client.post(f"{address}?type=sparse", {"name": "b", "depth": 3, "batch_size": 2, "model": "../x"})
    assert elsewhere.status_code == 422 and Run.objects.count() == 1
    made = client.post(f"{address}?type=rerank-folder", {**common, "name": "a", "prompt": "monot5"})
    assert made.status_code == 302 and work_on(Run.objects.get(name="a")).state == "ready"
    made = client.post(f"{address}?type=sparse", {"name": "b", "depth": 3, "batch_size": 2, "model": "splade"})
    assert made.status_code == 302 and Run.objects.get(name="b").recipe["model"].endswith("bases/splade")
