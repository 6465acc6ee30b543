"""Charts of the balance of length by score."""

from collections.abc import Mapping
from itertools import chain, pairwise
from typing import Any

from django.utils.translation import gettext as _

from charts import Chart, draw_heatmap


def draw_balance(export_number: int, balance: Mapping[str, Any], moment: str) -> Chart:
    """Draw the training pairs by length and target score, with high scores at the top.

    `balance` is the entry of the manifest on balancing (balancing.balance_pairs), and `moment` is its key "before" or
    "after".
    """
    spread = balance[moment]  # As measure_spread returns it.
    counts: list[list[int]] = spread["cells"]  # Training pairs by score, lowest first, and by length, shortest first.
    length_edges = [0, *balance["length_bins"]]
    columns = [f"{low}-{high - 1}" for low, high in pairwise(length_edges)] + [f"{length_edges[-1]} +"]
    rows = {
        _("%(low)s to %(high)s")
        % {"low": f"{row / len(counts):.2f}", "high": f"{(row + 1) / len(counts):.2f}"}: counts[row]
        for row in reversed(range(len(counts)))
    }
    cells = list(chain.from_iterable(counts))
    distribution = _("%(pairs)s training pairs in %(filled)s of %(bins)s cells, at most %(most)s in one") % {
        "pairs": f"{sum(cells):,}",
        "filled": sum(count > 0 for count in cells),
        "bins": len(cells),
        "most": f"{max(cells):,}",
    }
    evenness = _("entropy %(entropy)s, coefficient of variation %(variation)s") % {
        "entropy": f"{spread['entropy']:.3f}",
        "variation": f"{spread['coefficient_of_variation']:.2f}",
    }
    if moment == "after":
        title = _("Length by score after balancing")
        summary = _("After balancing: %(distribution)s; normalized %(evenness)s.")
    else:
        title = _("Length by score before balancing")
        summary = _("Before balancing: %(distribution)s; normalized %(evenness)s.")
    return draw_heatmap(
        f"balance-{export_number}-{moment}",
        title,
        rows,
        columns,
        x=_("tokens of the document") if balance["length_unit"] == "tokens" else _("words of the document"),
        y=_("target score"),
        high=max(*cells, 1),
        summary=summary % {"distribution": distribution, "evenness": evenness},
    )
