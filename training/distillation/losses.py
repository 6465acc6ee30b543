"""The losses of the ablation over groups of documents: margins in, one value for each group out (P appendix B).

Margins and teacher scores are (groups, documents), the relevant document first.
"""

import torch
from torch import Tensor
from torch.nn import functional

LEAST = 1e-6  # Scores nearer to 0 or 1 would be logits without end.


def teacher_logits(scores: Tensor) -> Tensor:
    """Return the logits of scores between 0 and 1: the inverse of the sigmoid."""
    return torch.logit(scores, eps=LEAST)


def point_loss(margins: Tensor, scores: Tensor) -> Tensor:
    """Return the sum over a group of (sigmoid(margin) - score)^2 (P eq. 3)."""
    return ((torch.sigmoid(margins) - scores) ** 2).sum(-1)


def list_loss(margins: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """Return T^2 KL(teacher, student), both softened by T: Hinton's distillation over a group."""
    # T^2 below keeps the gradient's size, which falls by 1/T^2 where both sides are softened (Hinton et al. 2015).
    student = torch.log_softmax(margins / temperature, -1)
    teacher = torch.log_softmax(teacher_logits(scores) / temperature, -1)
    return functional.kl_div(student, teacher, reduction="none", log_target=True).sum(-1) * temperature**2


def negative_weights(scores: Tensor, temperature: float) -> Tensor:
    """Return what each negative counts: softmax of -(its teacher margin to the positive) / T, 1 in all.

    The paper says only that hard negatives, of a small margin, count more (ADR 0081).
    """
    logits = teacher_logits(scores)
    return torch.softmax(-(logits[..., :1] - logits[..., 1:]) / temperature, -1)


def rank_loss(margins: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """Return InfoNCE over a group, each negative times its weight; equal weights: plain InfoNCE."""
    weights = negative_weights(scores, temperature)
    # A weight before an exponential is its logarithm within.
    raised = margins[..., 1:] + torch.log(weights * weights.shape[-1])
    return torch.logsumexp(torch.cat([margins[..., :1], raised], -1), -1) - margins[..., 0]
