"""The losses of the ablation over groups of documents, one value for each group (Prism appendix B).

Margins and teacher scores have the shape (groups, documents), the relevant document first.
"""

import torch
from torch import Tensor
from torch.nn import functional

LEAST = 1e-6  # Scores closer to 0 or 1 are clamped, to keep their logits finite.


def teacher_logits(scores: Tensor) -> Tensor:
    """Return the logits of scores between 0 and 1."""
    return torch.logit(scores, eps=LEAST)


def point_loss(margins: Tensor, scores: Tensor) -> Tensor:
    """Return the sum over a group of (sigmoid(margin) - score)^2 (Prism eq. 3)."""
    return ((torch.sigmoid(margins) - scores) ** 2).sum(-1)


def list_loss(margins: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """Return T^2 KL(teacher, student) over a group, both softened by the temperature T."""
    # Softening both sides scales the gradient by 1/T^2, which the factor T^2 undoes (Hinton et al. 2015).
    student = torch.log_softmax(margins / temperature, -1)
    teacher = torch.log_softmax(teacher_logits(scores) / temperature, -1)
    return functional.kl_div(student, teacher, reduction="none", log_target=True).sum(-1) * temperature**2


def negative_weights(scores: Tensor, temperature: float) -> Tensor:
    """Return the weight of each negative: the softmax of -(positive's - negative's teacher logit) / T, summing to 1.

    The paper says only that hard negatives, which have a small margin, count more (ADR 0081).
    """
    logits = teacher_logits(scores)
    return torch.softmax(-(logits[..., :1] - logits[..., 1:]) / temperature, -1)


def rank_loss(margins: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """Return InfoNCE over a group with weighted negatives; with equal weights it is plain InfoNCE."""
    weights = negative_weights(scores, temperature)
    # A factor of an exponential is its logarithm in the exponent.
    weighted_margins = margins[..., 1:] + torch.log(weights * weights.shape[-1])
    return torch.logsumexp(torch.cat([margins[..., :1], weighted_margins], -1), -1) - margins[..., 0]
