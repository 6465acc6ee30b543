"""Recipe `cross-encoder`: what its rows and targets are, and that its loss falls with each of the three losses."""

import pytest

torch = pytest.importorskip("torch")

from corpus.errors import BadInput  # noqa: E402
from tests.training.trainers.learnable import pairs  # noqa: E402
from training.recipes.data import Example, TrainingSet  # noqa: E402
from training.recipes.table import recipe_options  # noqa: E402
from training.trainers.batching import Epochs, pack_batches  # noqa: E402
from training.trainers.cross_encoder import CrossEncoder, build_features  # noqa: E402
from training.trainers.recipe import TrainingTask  # noqa: E402
from training.trainers.tiny_bases import tiny_encoder  # noqa: E402


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The tiny encoder."""
    return tiny_encoder(tmp_path_factory.mktemp("bases") / "encoder")


@pytest.fixture(scope="module")
def tokenizer(base):
    """Its tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(base)


def examples(rows):
    """Rows as a training set has them."""
    return [Example(r.query, r.document, "", r.label, r.teacher, "", r.query_id, r.doc_id) for r in rows]


def one(query_id, label, teacher=None, document="a document"):
    """A row of one query."""
    return Example("a query", document, "", label, teacher, "", query_id, "d")


def recipe(base, loss, rows, **changes):
    """The recipe at work on some rows."""
    chosen = recipe_options("cross-encoder", {"preset": "tiny", "loss": loss} | changes)
    data = TrainingSet(rows, [], "labels", "learnable", "0" * 64)
    return CrossEncoder(TrainingTask("cross-encoder", base, "tiny:encoder", data, chosen, "cpu", True))


def test_targets_are_labels_for_bce_and_teacher_scores_for_mse(tokenizer):
    rows = [one("q", 1, 0.3), one("q", None, 0.4), one("q", 0)]
    targets = {
        loss: [f.targets[0] for f in build_features(rows, tokenizer, loss=loss, max_length=32)]
        for loss in ("bce", "mse")
    }
    assert targets == {"bce": [1.0, 0.4, 0.0], "mse": [0.3, 0.4, 0.0]}


def test_a_row_of_lambda_is_a_query_with_its_best_documents(tokenizer):
    rows = [one("a", 0), one("b", 1), one("a", 1), one("a", 0), one("c", 0), one("c", 0)]
    found = build_features(rows, tokenizer, loss="lambda", max_length=32, documents=2)
    assert [feature.targets for feature in found] == [[1.0, 0.0]]  # b and c have nothing to order
    assert found[0].tokens == sum(len(row["input_ids"]) for row in found[0].rows)


def test_what_cannot_be_learned_from_is_refused(tokenizer):
    with pytest.raises(BadInput, match="query q, document d: neither label nor teacher score"):
        build_features([one("q", None)], tokenizer, loss="bce", max_length=32)
    with pytest.raises(BadInput, match="lambda needs queries with relevant and not relevant documents"):
        build_features([one("q", 1), one("q", 1)], tokenizer, loss="lambda", max_length=32)


@pytest.mark.parametrize("loss", ["bce", "mse", "lambda"])
def test_a_step_in_two_passes_has_the_gradient_of_one(base, loss):
    found = []
    for passes in ([[0, 1, 2, 3]], [[0, 1], [2, 3]]):
        work = recipe(base, loss, examples(pairs(queries=5)))
        work.model.eval()  # dropout draws anew for each pass
        for rows in passes:
            (work.forward(work.model, rows)[loss] / 4).backward()
        found.append(work.model.classifier.weight.grad.clone())
    assert torch.allclose(found[0], found[1], atol=1e-6) and found[0].abs().max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["bce", "mse", "lambda"])
def test_the_loss_falls_and_a_checkpoint_brings_the_weights_back(base, loss, tmp_path):
    torch.manual_seed(0)
    work = recipe(base, loss, examples(pairs(queries=60, seed=1)), batch=16 if loss != "lambda" else 6)
    optimizer = torch.optim.AdamW(work.model.parameters(), lr=1e-3)
    steps, losses = Epochs(work.lengths(), work.task.options.batch, 0), []
    for number in range(90):
        rows = steps.step(number)
        for places in pack_batches([work.lengths()[row] for row in rows], work.task.options.token_budget):
            part = work.forward(work.model, [rows[place] for place in places])[loss] / len(rows)
            part.backward()
        losses.append(part.item())
        optimizer.step()
        optimizer.zero_grad()
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])
    dev = examples(pairs(queries=3, seed=2, first=100))
    before = work.dev_margins(dev)
    work.save(tmp_path)
    work.model.classifier.weight.data.zero_()
    work.load(tmp_path)
    assert work.dev_margins(dev) == before and work.model.training
    assert work.trained(tmp_path).trained_margins(dev) == pytest.approx(before, abs=1e-6)
