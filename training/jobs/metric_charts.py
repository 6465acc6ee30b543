"""Pictures of what a reinforcement learning writes into metrics.jsonl beside its loss."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from charts import Chart, draw_lines

# Key of the chart and of a line of metrics -> what it is.
NAMES = {
    "reward_mean": gettext_noop("Mean reward"),
    "kl": gettext_noop("KL divergence from the reference model"),
    "response_tokens": gettext_noop("Answer length in tokens"),
    "malformed": gettext_noop("Share of malformed answers"),
}
KINDS = {"positive": gettext_noop("relevant documents"), "negative": gettext_noop("other documents")}


def draw_metrics(lines: Sequence[Mapping[str, Any]], words: str) -> list[Chart]:
    """Draw rewards, KL, answer length and malformed answers of the rounds; nothing for other trainings."""
    return [
        draw_lines(
            key,
            _("%(name)s by step (%(words)s)") % {"name": _(name), "words": words},
            _series_of(key, lines),
            x=_("step"),
            y=_(name),
            low=None if key == "reward_mean" else 0.0,
        )
        for key, name in NAMES.items()
        if any(line.get(key) is not None for line in lines)
    ]


def _series_of(key: str, lines: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    series = {_("all"): [(line["step"], float(line[key])) for line in lines if line.get(key) is not None]}
    if key == "reward_mean":
        for kind, name in KINDS.items():
            found = [(line["step"], line.get("reward_by_kind") or {}) for line in lines]
            series[_(name)] = [(step, float(by_kind[kind])) for step, by_kind in found if kind in by_kind]
    return {name: points for name, points in series.items() if points}
