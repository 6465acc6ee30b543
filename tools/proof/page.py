"""The page docs/proof.md and its two pictures, from stored figures alone: the same figures, the same table. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from charts import Bar, IntervalSpan, draw_bars, draw_intervals

Figures = Mapping[str, Any]
TEMPLATE = Path(__file__).with_name("page.md")
KINDS = {
    "bm25": "offline, counts words", "tfidf": "offline, counts words", "coverage": "offline, counts words",
    "ngrams": "offline, counts characters", "smollm2": "SmolLM2, 135 million parameters",
    "always-yes": "scripted: yes to everything", "noisy-copy": "scripted: the qrels, 9 of 10 pairs right",
}  # fmt: skip
BAD = ("always-yes", "smollm2")
ROUNDING = 1e-9
PANELS = {"local": "SmolLM2 alone", "offline": "the offline panel", "panel": "the mixed panel"}


def interval(share: Mapping[str, Any] | None, signed: bool = False) -> str:
    """Return a value with its interval, to three decimals; "-" without a value."""
    if share is None or share.get("value") is None:
        return "-"
    sign = "+" if signed else ""
    value = f"{share['value']:{sign}.3f}"
    low, high = share.get("low"), share.get("high")
    return value if low is None or high is None else f"{value} ({low:{sign}.3f} to {high:{sign}.3f})"


def change(row: Mapping[str, Any] | None) -> str:
    """Return a difference with its interval; "-" without one."""
    return "-" if row is None else interval({**row, "value": row["difference"]}, signed=True)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def contains(share: Mapping[str, Any] | None, value: float | None) -> bool:
    """Return whether an interval contains a value."""
    return bool(share and value is not None and share["low"] <= value <= share["high"])


def picture_of_rankings(figures: Figures) -> str:
    """Draw nDCG@10 of every run with its interval."""
    rows = figures["runs"]["rows"]
    spans = [IntervalSpan(row["name"], *(row["nDCG@10"][key] for key in ("value", "low", "high"))) for row in rows]
    source = f"Cranfield, {rows[0]['queries']} queries; 95% intervals over queries."
    return draw_intervals("rankings", "Rankings by the qrels", spans, x="nDCG@10", source=source).standalone()


def picture_of_judges(figures: Figures) -> str:
    """Draw the balanced accuracy of every judge with its interval, beside chance."""
    judges = figures["agreement"]["judges"]
    bars = [
        Bar(f"{row['name']} ({KINDS[row['name']]})", *(row["balanced"][key] for key in ("value", "low", "high")))
        for row in judges
    ]
    source = f"{figures['pool']['pairs']} pairs of Cranfield; exact 95% intervals."
    chart = draw_bars(
        "judges", "Judges by the qrels", bars, x="balanced accuracy", high=1.0, mark=(0.5, "chance"), source=source
    )
    return chart.standalone()


def rankings(figures: Figures) -> str:
    """Return the table of the first stage and its hybrids."""
    rows = [
        (row["name"], interval(row["nDCG@10"]), interval(row["R@100"]), change(row.get("change")))
        for row in figures["runs"]["rows"]
    ]
    return table(("run", "nDCG@10", "R@100", "nDCG@10 against BM25"), rows)


def campaigns(figures: Figures) -> str:
    """Return the table of campaigns: what was labelled, how right it is, and what the audit said of it."""
    rows = []
    for name, campaign in figures["judging"].items():
        label_audit = figures["audits"][name]
        inside = "yes" if contains(label_audit["accuracy"], campaign["accuracy"]["value"]) else "no"
        rows.append(
            (
                PANELS[name],
                f"{campaign['labelled']} of {campaign['pairs']}",
                interval({"value": campaign["accuracy"]["value"]}),
                f"{interval(label_audit['accuracy'])}, {label_audit['resolved']} audited",
                inside,
                f"{sum(route['stopped'] for route in label_audit['routes'])} of {len(label_audit['routes'])}",
                "yes" if label_audit["can_go_out"] else "no",
            )
        )
    header = (
        "judged by",
        "labelled",
        "true accuracy",
        "by the audit",
        "in its interval",
        "routes stopped",
        "ready to export",
    )
    return table(header, rows)


def judges_table(figures: Figures) -> str:
    """Return the table of judges: by the qrels, and what the panel study says."""
    rows = [
        (
            f"`{row['name']}`",
            KINDS[row["name"]],
            f"{row['relevant']:.2f}",
            interval(row["kappa"]),
            interval(row["percent"]),
            "passes" if row["passes"] else row["why_not"],
        )
        for row in figures["agreement"]["judges"]
    ]
    header = ("judge", "what it is", "says yes", "kappa with the qrels", "accuracy", "panel study")
    return table(header, rows)


def errors_table(figures: Figures) -> str:
    """Return the table of suspected label errors."""
    rows = [
        (PANELS[name], row["labels"], row["wrong"], row["suspects"], row["wrong_suspects"], interval(row["first"]))
        for name, row in figures["label errors"].items()
    ]
    header = (
        "labels of",
        "labels",
        "wrong",
        "suspected",
        "of these wrong",
        "wrong among the first (as many as are wrong)",
    )
    return table(header, rows)


def holes_table(figures: Figures) -> str:
    """Return the table of nDCG@10 before holes are filled, its bounds, and after."""
    rows = [
        (
            run["name"],
            f"{run['judged']:.3f}",
            f"{run['before']:.3f}",
            f"{run['low']:.3f} to {run['high']:.3f}",
            *(f"{run[kind]:.3f}" for kind in ("lexical", "copy", "full")),
        )
        for run in figures["holes"]["runs"]
    ]
    header = (
        "run",
        "Judged@10",
        "nDCG@10 before",
        "bounds",
        "filled by the offline panel",
        "filled by `noisy-copy`",
        "all qrels",
    )
    return table(header, rows)


def training_tables(figures: Figures) -> str:
    """Return the tables of the held-out queries before and after training: as a reranker, and as a retriever."""
    gain = figures["training"]["gain"]
    reranked = table(
        ("BM25", "MiniLM as it is", "trained", "trained against MiniLM", "trained against BM25", "verdict of Quorum"),
        [
            (
                *(f"{value:.3f}" for value in (gain["first_stage"]["mean"], gain["base"], gain["tuned"])),
                change(gain),
                change(gain["first_stage"]),
                gain["words"],
            )
        ],
    )
    rows = [(row["name"], interval(row["nDCG@10"]), change(row.get("change"))) for row in figures["training"]["dense"]]
    dense = table(("run over all documents", "nDCG@10", "against MiniLM as it is"), rows)
    return f"{reranked}\n\n{dense}"


def skene_table(figures: Figures) -> str:
    """Return the table of Dawid-Skene's accuracies beside the true ones."""
    judges = sorted(figures["agreement"]["judges"], key=lambda row: -row["percent"]["value"])
    rows = [
        (f"`{row['name']}`", f"{row['percent']['value']:.3f}", *(_plain(row[f"skene_{key}"]) for key in ("few", "all")))
        for row in judges
    ]
    header = ("judge", "true accuracy", "Dawid-Skene, one judge counts words", "Dawid-Skene, all judges")
    return table(header, rows)


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def checks(figures: Figures) -> list[tuple[str, bool]]:
    """Return the claims of the proof, each with whether the figures bear it out."""
    judges = figures["agreement"]["judges"]
    ordered = [row for row in judges if row["skene_few"] is not None]
    agreed = same_order([row["percent"]["value"] for row in ordered], [row["skene_few"] for row in ordered])
    bad = [row for row in judges if row["name"] in BAD]
    good = next(row for row in judges if row["name"] == "noisy-copy")
    audited = [
        contains(figures["audits"][name]["accuracy"], campaign["accuracy"]["value"])
        for name, campaign in figures["judging"].items()
    ]
    bounded = [run["low"] - ROUNDING <= run["full"] <= run["high"] + ROUNDING for run in figures["holes"]["runs"]]
    named = ", ".join(f"`{row['name']}`" for row in bad)
    claims = [
        (f"The panel study names {named}", all(not row["passes"] for row in bad)),
        ("The panel study lets `noisy-copy` pass", good["passes"]),
        ("Dawid-Skene orders the judges rightly where one of them counts words", agreed),
        ("Quorum names judges that count words as erring together", names_alike(figures["agreement"]["err_together"])),
        ("The true accuracy of each campaign's labels lies in its audit's interval", all(audited)),
        (
            "No campaign's labels are called ready to export",
            not any(a["can_go_out"] for a in figures["audits"].values()),
        ),
        ("nDCG@10 by all qrels lies in the bounds that were computed without half of them", all(bounded)),
    ]
    if figures["training"]:
        gain = figures["training"]["gain"]
        claims.append(
            (
                "Training gains over MiniLM as it is and over BM25 on held-out queries, with intervals above 0",
                gain["low"] > 0 and gain["first_stage"]["low"] > 0,
            )
        )
    return claims


def names_alike(groups: Sequence[Sequence[str]]) -> bool:
    """Return whether there are groups of judges that err together, and all of one kind."""
    return bool(groups) and all(KINDS[name].startswith("offline") for group in groups for name in group)


def same_order(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return whether two lists of values put their members in the same order."""
    return sorted(range(len(first)), key=first.__getitem__) == sorted(range(len(second)), key=second.__getitem__)


def render(figures: Figures, facts: Mapping[str, Any]) -> str:
    """Return the whole page. `facts`: date, machine, models, options and times, which no table has."""
    pool, holes, floor = figures["pool"], figures["holes"], figures["agreement"]["floor"]
    fields = {
        **facts,
        "claims": table(
            ("claim", "holds"), [(claim, "yes" if holds else "**no**") for claim, holds in checks(figures)]
        ),
        "documents": f"{figures['import']['documents']:,}",
        "queries": figures["import"]["queries"],
        "judgments": f"{figures['import']['judgments']:,}",
        "rankings": rankings(figures),
        "sampled": pool["queries"],
        "pairs": pool["pairs"],
        "relevant": pool["relevant"],
        "irrelevant_share": f"{1 - pool['relevant'] / pool['pairs']:.3f}",
        "campaigns": campaigns(figures),
        "floor": f"{floor['measure'].replace('_', ' ')} of {floor['value']:.3f}",
        "judges": judges_table(figures),
        "skene": skene_table(figures),
        "alike": "; ".join(", ".join(f"`{name}`" for name in group) for group in figures["agreement"]["err_together"])
        or "none",
        "errors": errors_table(figures),
        "small_judge": describe_small_judge(figures),
        "hidden": holes["hidden"],
        "pool": holes["pool"],
        "candidates": holes["candidates"],
        "holes": holes_table(figures),
        "lexical": interval(holes["labels"]["lexical"]),
        "copy": interval(holes["labels"]["copy"]),
        "training": describe_training(figures),
    }
    return TEMPLATE.read_text().format_map(fields).rstrip() + "\n"


def describe_small_judge(figures: Figures) -> str:
    """Return what a small model is worth as a judge, by its own figures."""
    local = next((row for row in figures["agreement"]["judges"] if row["name"] == "smollm2"), None)
    if local is None:
        return "No model judged: the proof was made with `--no-models`."
    label_audit = figures["audits"]["local"]
    near = "no better than chance" if contains(local["kappa"], 0.0) else "better than chance, and poor"
    ready = "" if label_audit["can_go_out"] else "not "
    return (
        f"SmolLM2's kappa with the qrels is {interval(local['kappa'])}: {near}. It says yes to {local['relevant']:.0%} "
        f"of the pairs. The panel study says of it: “{local['why_not'] or 'passes'}”. The audit of the labels that it "
        f"gave alone says {interval(label_audit['accuracy'])}, and they are {ready}called ready to export. Use a model "
        "of this size to try Quorum out, not for labels."
    )


def describe_training(figures: Figures) -> str:
    """Return the figures of the training; one sentence where there was none."""
    training = figures["training"]
    if not training:
        return "Nothing was trained: the proof was made with `--no-models`."
    return (
        f"MiniLM was trained by `rtriever` for {training['steps']} steps on {training['train_queries']} queries and "
        f"measured on {training['held_out']} others. First the report of the training itself, where BM25's first "
        f"documents are reranked, then runs over all documents.\n\n{training_tables(figures)}"
    )
