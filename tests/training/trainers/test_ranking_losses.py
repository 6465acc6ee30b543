"""Losses of the recipe `cross-encoder`, hand-worked and against what other libraries compute."""

import math

import pytest

torch = pytest.importorskip("torch")

from training.trainers.cross_encoder import bce_loss, lambda_loss, mse_loss  # noqa: E402


def test_bce_and_mse_by_hand():
    logits = torch.tensor([0.0, math.log(3)])
    assert bce_loss(logits, torch.tensor([1.0, 0.0])).tolist() == pytest.approx([math.log(2), math.log(4)])
    assert mse_loss(logits, torch.tensor([1.0, 0.5])).tolist() == pytest.approx([0.25, 0.0625])


def test_lambda_of_two_documents_by_hand():
    # The relevant one is second: swapping gains 1 - 1/log2(3) of an ideal of 1; the pair costs log2(1 + e^1).
    scores, wanted = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    expected = (1 - 1 / math.log2(3)) * math.log2(1 + math.e)
    assert lambda_loss(scores, wanted).item() == pytest.approx(expected, rel=1e-6)


def test_lambda_equals_the_definition_summed_pair_by_pair():
    generator = torch.Generator().manual_seed(5)
    scores = torch.randn(14, generator=generator)
    wanted = torch.randint(0, 3, (14,), generator=generator).float()
    place = {int(index): rank for rank, index in enumerate(torch.argsort(scores, descending=True))}

    def gain(i):
        return 2 ** wanted[i].item() - 1

    def discount(rank):
        return 1 / math.log2(rank + 2) if rank < 10 else 0.0

    ideal = sum(g * discount(r) for r, g in enumerate(sorted((gain(i) for i in range(14)), reverse=True)))
    total = 0.0
    for i in range(14):
        for j in range(14):
            if wanted[i] > wanted[j]:
                change = abs(gain(i) - gain(j)) * abs(discount(place[i]) - discount(place[j])) / ideal
                total += change * math.log2(1 + math.exp(scores[j].item() - scores[i].item()))
    assert lambda_loss(scores, wanted).item() == pytest.approx(total, rel=1e-5)


def test_a_list_without_a_better_document_costs_nothing_and_still_has_a_gradient():
    scores = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = lambda_loss(scores, torch.tensor([1.0, 1.0]))
    loss.backward()
    assert loss.item() == 0.0 and scores.grad.tolist() == [0.0, 0.0]


def test_a_step_against_the_lambda_gradient_raises_the_relevant_document():
    scores = torch.tensor([2.0, 0.0, 1.0], requires_grad=True)
    lambda_loss(scores, torch.tensor([0.0, 1.0, 0.0])).backward()
    assert scores.grad[1] < 0 < scores.grad[0]
