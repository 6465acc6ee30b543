"""Losses of the recipe `cross-encoder`: BCE on labels, MSE on teacher scores, lambda on a query's list."""

import torch
from torch import Tensor
from torch.nn import functional


def bce_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy of each logit, (n,) fp32; targets in 0..1, so that soft labels work too. Returns (n,)."""
    return functional.binary_cross_entropy_with_logits(logits.float(), targets.float(), reduction="none")


def mse_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """(sigmoid(logit) - teacher)^2 of each row, as Prism's point-wise term. Returns (n,)."""
    return (torch.sigmoid(logits.float()) - targets.float()) ** 2


def lambda_loss(logits: Tensor, targets: Tensor, k: int = 10) -> Tensor:
    """LambdaRank over one query's list (Burges 2006; the nDCG bound of Wang et al. 2018, "The LambdaLoss framework").

    Every pair with target_i > target_j pays |change of nDCG@k when the two swap| x log2(1 + exp(s_j - s_i)).
    Ranks are those of the current scores; they carry no gradient. A list without such a pair costs 0.
    Returns a scalar.
    """
    scores, wanted = logits.float(), targets.float()
    better = wanted[:, None] > wanted[None, :]
    if not bool(better.any()):
        return scores.sum() * 0.0
    gains = torch.pow(2.0, wanted) - 1.0
    ideal = (gains.sort(descending=True).values * _dcg_discounts(len(gains), k, scores.device)).sum()
    order = torch.argsort(scores.detach(), descending=True, stable=True)
    discounts = torch.empty_like(scores)
    discounts[order] = _dcg_discounts(len(gains), k, scores.device)
    swap = (gains[:, None] - gains[None, :]).abs() * (discounts[:, None] - discounts[None, :]).abs() / ideal
    # log2(1 + e^x) of the score differences, without overflow.
    cost = functional.softplus(scores[None, :] - scores[:, None]) / torch.log(torch.tensor(2.0))
    return (swap.detach() * cost * better).sum()


def _dcg_discounts(count: int, k: int, device: torch.device) -> Tensor:
    places = torch.arange(count, device=device, dtype=torch.float32)
    return torch.where(places < k, 1.0 / torch.log2(places + 2.0), torch.zeros_like(places))
