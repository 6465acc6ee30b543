"""What a job `generate` found, as its page shows it: P table 2's columns by rule, and figure 5's scatter."""

from typing import Any

from corpus.charts import Chart, Dot, scatter

ROWS = {
    "label_match": "First word agrees with the label",
    "format": "Format score",
    "fidelity": "Entity fidelity (numbers, percentages, dates)",
    "language": "In the language expected",
}
PARTS = {"p10": "Evidence over document, p10", "median": "the same, median", "p90": "the same, p90"}
DRAWN = 400


def sides(result: dict[str, Any]) -> list[str]:
    """The models that wrote: base and tuned."""
    return list(result.get("outputs") or {})


def table(result: dict[str, Any]) -> list[tuple[str, list[float | None]]]:
    """A row for each measure with each model's value; None where undefined."""
    found = (result.get("outputs") or {}).values()
    rows = [(title, [one.get(key) for one in found]) for key, title in ROWS.items()]
    rows += [(title, [one["compression"][key] for one in found]) for key, title in PARTS.items()]
    return rows if found else []


def reasons(result: dict[str, Any]) -> list[str]:
    """Why values are missing, one line for each."""
    titles = ROWS | {"compression": "Evidence over document"}
    found = (result.get("outputs") or {}).items()
    return [
        f"{side}: {titles[key]} is not defined: {why}." for side, one in found for key, why in one["reasons"].items()
    ]


def chart(result: dict[str, Any]) -> Chart | None:
    """Tokens of the evidence against tokens of the document, each row that a model called relevant."""
    found = result.get("outputs") or {}
    dots = [Dot(x, y, "", side) for side, one in found.items() for x, y in one["points"][:DRAWN]]
    if not dots:
        return None
    shorter = sum(dot.y < dot.x for dot in dots)
    summary = f"{len(dots)} rows with evidence; in {shorter} of them it is shorter than the document."
    return scatter(
        "evidence",
        "Evidence by document, in tokens of the model",
        dots,
        x="document",
        y="evidence",
        diagonal=True,
        summary=summary,
    )
