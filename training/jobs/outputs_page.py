"""What a job `generate` found, as its page shows it: P table 2's columns by rule, and figure 5's scatter."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from charts import Chart, Dot, draw_scatter

ROWS = {
    "label_match": gettext_noop("First word agrees with the label"),
    "format": gettext_noop("Format score"),
    "fidelity": gettext_noop("Entity fidelity (numbers, percentages, dates)"),
    "fidelity_prism": gettext_noop("Entity fidelity by substring, as in Prism"),
    "language": gettext_noop("In the language expected"),
}
PARTS = {
    "p10": gettext_noop("Tokens of evidence over tokens of document, p10"),
    "median": gettext_noop("the same, median"),
    "p90": gettext_noop("the same, p90"),
}
DRAWN = 400


def output_sides(result: dict[str, Any]) -> list[str]:
    """The models that wrote: base and tuned."""
    return list(result.get("outputs") or {})


def measures_table(result: dict[str, Any]) -> list[tuple[str, list[float | None]]]:
    """A row for each measure with each model's value; None where undefined."""
    found = (result.get("outputs") or {}).values()
    rows = [(_(title), [one.get(key) for one in found]) for key, title in ROWS.items()]
    rows += [(_(title), [one["compression"][key] for one in found]) for key, title in PARTS.items()]
    return rows if found else []


def undefined_reasons(result: dict[str, Any]) -> list[str]:
    """Why values are missing, one line for each."""
    titles = ROWS | {"compression": _("Tokens of evidence over tokens of document")}
    found = (result.get("outputs") or {}).items()
    return [
        _("%(side)s: %(title)s is not defined: %(why)s.") % {"side": side, "title": _(titles[key]), "why": why}
        for side, one in found
        for key, why in one["reasons"].items()
    ]


def evidence_chart(result: dict[str, Any]) -> Chart | None:
    """Tokens of the evidence against tokens of the document, each row that a model called relevant."""
    found = result.get("outputs") or {}
    dots = [Dot(x, y, "", side) for side, one in found.items() for x, y in one["points"][:DRAWN]]
    if not dots:
        return None
    shorter = sum(dot.y < dot.x for dot in dots)
    summary = _("%(dots)s rows with evidence; in %(shorter)s of them it is shorter than the document.") % {
        "dots": len(dots),
        "shorter": shorter,
    }
    return draw_scatter(
        "evidence",
        _("Evidence by document, in tokens of the model"),
        dots,
        x="document",
        y="evidence",
        diagonal=True,
        summary=summary,
    )
