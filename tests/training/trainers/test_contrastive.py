"""RTriever's loss against numbers worked out by hand, plain cross-entropy and the library's own loss."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss  # noqa: E402

from training.recipes.bundles import Bundle, Passage  # noqa: E402
from training.trainers.contrastive import InBatchLoss, find_false_negatives  # noqa: E402

torch.set_num_threads(1)


class Lookup(torch.nn.Module):
    """A model whose vectors are its weights, so that a loss is seen without anything around it."""

    def __init__(self, vectors: Any, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(vectors.clone())
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        vectors = self.dropout(self.table[features["input_ids"][:, 0]])
        return {"sentence_embedding": torch.nn.functional.normalize(vectors, dim=1)}

    def __getitem__(self, place: int) -> torch.nn.Module:
        return self


def bundles_of(size: int) -> list[Bundle]:
    return [Bundle(f"q{n}", f"q{n}", (Passage(f"p{n}", f"p{n}"),), (Passage(f"n{n}", f"n{n}"),)) for n in range(size)]


def batch_of(size: int) -> tuple[list[dict[str, Any]], Any]:
    ids = torch.arange(3 * size).reshape(3, size, 1)
    features = [{"input_ids": one, "attention_mask": torch.ones_like(one)} for one in ids]
    return features, torch.tensor([[n, 0, 0] for n in range(size)])


def loss_of(vectors: Any, temperature: float, *, dropout: float = 0.0, bundles: Any = None, **options: Any) -> Any:
    """The loss, and the gradient of every vector; vectors: queries, then positives, then negatives."""
    size = len(vectors) // 3
    model = Lookup(vectors, dropout)
    loss = InBatchLoss(model, bundles or bundles_of(size), temperature=temperature, **options)(*batch_of(size))
    loss.backward()
    return float(loss.detach()), model.table.grad


HAND = torch.tensor([[1.0, 0], [0, 1], [0.8, 0.6], [0.6, 0.8], [0.6, 0.8], [1, 0]])


@pytest.mark.parametrize(("temperature", "expected"), [(1.0, 1.267285), (0.02, 5.346608)])
def test_two_queries_by_hand(temperature: float, expected: float) -> None:
    assert loss_of(HAND.double(), temperature)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_it_is_cross_entropy_over_all_documents_of_the_batch_and_the_librarys_own_loss(size: int) -> None:
    torch.manual_seed(size)
    vectors = torch.nn.functional.normalize(torch.randn(3 * size, 8, dtype=torch.float64), dim=1)
    plain = torch.nn.functional.cross_entropy(vectors[:size] @ vectors[size:].T / 0.02, torch.arange(size))
    assert loss_of(vectors, 0.02)[0] == pytest.approx(float(plain), abs=1e-9)
    model = Lookup(vectors.float())
    theirs = MultipleNegativesRankingLoss(model, scale=50.0)(*batch_of(size))
    assert loss_of(vectors.float(), 0.02)[0] == pytest.approx(float(theirs.detach()), abs=1e-6)


@pytest.mark.parametrize("mask", [False, True])
def test_without_negatives_of_their_own_queries_have_those_of_the_batch(mask: bool) -> None:
    figures: dict[str, Any] = {}
    features, labels = batch_of(4)
    torch.manual_seed(4)
    vectors = torch.nn.functional.normalize(torch.randn(12, 8, dtype=torch.float64), dim=1)
    loss = InBatchLoss(Lookup(vectors), bundles_of(4), temperature=0.05, mask=mask, note=figures.update)
    plain = torch.nn.functional.cross_entropy(vectors[:4] @ vectors[4:8].T / 0.05, torch.arange(4))
    assert float(loss(features[:2], labels).detach()) == pytest.approx(float(plain), abs=1e-9)
    assert figures["chunks"] == 2 and "negative_similarity" not in figures


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_chunks_never_change_the_gradient(chunk: int, dropout: float) -> None:
    torch.manual_seed(0)
    vectors = torch.randn(21, 8)
    if not dropout:
        whole, cut = loss_of(vectors, 0.1), loss_of(vectors, 0.1, token_budget=chunk)
        assert cut[0] == pytest.approx(whole[0], abs=1e-6)
        assert torch.allclose(cut[1], whole[1], atol=1e-6)
        return
    # With dropout the second pass must draw what the first one drew: the gradient is that of one graph of both.
    torch.manual_seed(1)
    found = loss_of(vectors, 0.1, dropout=dropout, token_budget=chunk)
    torch.manual_seed(1)
    model = Lookup(vectors, dropout)
    features, _ = batch_of(7)
    parts = [
        torch.cat([model({"input_ids": piece})["sentence_embedding"] for piece in one["input_ids"].split(chunk)])
        for one in features
    ]
    plain = torch.nn.functional.cross_entropy(parts[0] @ torch.cat(parts[1:]).T / 0.1, torch.arange(7))
    plain.backward()
    assert found[0] == pytest.approx(float(plain.detach()), abs=1e-5)
    assert torch.allclose(found[1], model.table.grad, atol=1e-5)


def test_equal_queries_are_not_compared_with_each_other() -> None:
    """The gradient is that of the formula without query-query and document-document terms (autograd of it)."""
    torch.manual_seed(3)
    vectors = torch.randn(12, 6, dtype=torch.float64)
    vectors[1] = vectors[0]
    table = vectors.clone().requires_grad_()
    unit = torch.nn.functional.normalize(table, dim=1)
    torch.nn.functional.cross_entropy(unit[:4] @ unit[4:].T / 0.05, torch.arange(4)).backward()
    assert torch.allclose(loss_of(vectors, 0.05)[1], table.grad, atol=1e-9)


def test_false_negatives_are_counted_and_have_no_weight_only_where_masked() -> None:
    """Query 0 has the drawn positive of query 1 among its own positives, by text."""
    bundles = bundles_of(2)
    bundles[0] = Bundle("q0", "q0", (Passage("p0", "p0"), Passage("other-id", "p1")), bundles[0].negatives)
    blocked = find_false_negatives(bundles, [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0]])
    assert blocked.tolist() == [[False, True, False, False], [False] * 4]
    told: dict[str, Any] = {}
    vectors = HAND.double()
    kept = loss_of(vectors, 1.0, bundles=bundles, note=told.update)
    masked = loss_of(vectors, 1.0, bundles=bundles, mask=True, note=lambda **figures: None)
    assert told["false_negatives"] == 1 and kept[0] == pytest.approx(1.267285, abs=1e-6)
    first = -torch.log_softmax(torch.tensor([0.8, 0.6, 1.0], dtype=torch.float64), 0)[0]
    assert masked[0] == pytest.approx((float(first) + 1.184196) / 2, abs=1e-6)


def test_the_figures_of_a_step_are_told() -> None:
    told: dict[str, Any] = {}
    loss_of(HAND, 0.02, token_budget=1, note=told.update)
    assert (told["chunks"], told["tokens"], told["in_batch_accuracy"]) == (6, 6, 0.5)
    assert (told["positive_similarity"], told["negative_similarity"]) == (0.8, 0.3)
