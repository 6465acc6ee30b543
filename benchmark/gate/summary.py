"""What a verdict says: its document, its reason in a sentence, and the summary of it as Markdown and as JUnit XML."""

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.gate.verdict import FAIL, PASS, UNJUDGED, GateVerdict, as_document

Document = Mapping[str, Any]


def build_result(verdict: GateVerdict) -> dict[str, Any]:
    """Return the document of a verdict, as the command prints it; the service adds what it is about."""
    result: dict[str, Any] = {
        "verdict": verdict.verdict,
        "measures": {name: as_document(outcome) for name, outcome in verdict.measures.items()},
        "order": list(verdict.measures),
        "deciding_pairs": len(verdict.deciding),
        "cause": verdict.cause,
        "level": round(verdict.level, 9),
    }
    return {**result, "reason": explain_verdict(result)}


def measures_in_order(result: Document) -> dict[str, Any]:
    """Return the verdicts by measure in the order in which they were named; PostgreSQL stores objects in another."""
    return {name: result["measures"][name] for name in result["order"]}


def explain_verdict(result: Document) -> str:
    """Return the reason of a verdict in a sentence or two, in the reader's language."""
    measures = measures_in_order(result)
    if result["verdict"] == PASS:
        if not depends_on_judging(measures.values()):
            return _("Every interval is above the limit.")
        return _("Every interval is above the limit, however the unjudged documents are judged.")
    if result["verdict"] == FAIL:
        below = {name: outcome for name, outcome in measures.items() if outcome["verdict"] == FAIL}
        message = _("The interval of %(measures)s is below the limit, however the unjudged documents are judged.")
        if not depends_on_judging(below.values()):
            message = _("The interval of %(measures)s is below the limit.")
        return message % {"measures": ", ".join(below)}
    sentences = []
    if few := {name: outcome for name, outcome in measures.items() if outcome["cause"] == "queries"}:
        message = _(
            "Too few queries for %(measures)s: the interval contains the limit, and no judging would decide it."
        )
        if not depends_on_judging(few.values()):
            message = _("Too few queries for %(measures)s: the interval contains the limit.")
        sentences.append(message % {"measures": ", ".join(few)})
    if result["cause"] == UNJUDGED:
        pairs = result["deciding_pairs"]
        message = ngettext(
            "Unjudged documents decide: judge %(pairs)s pair.",
            "Unjudged documents decide: judge %(pairs)s pairs.",
            pairs,
        )
        sentences.append(message % {"pairs": f"{pairs:,}"})
    return " ".join(sentences)


def depends_on_judging(outcomes: Iterable[Document]) -> bool:
    """Return whether judging what is unjudged could move any of these changes."""
    return any(outcome["least"] != outcome["most"] for outcome in outcomes)


def verdict_title(verdict: str) -> str:
    """Return a verdict in words."""
    titles = {"pass": _("Pass"), "fail": _("Fail"), "cannot_tell": _("Cannot tell")}
    return titles[verdict]


def as_markdown(result: Document) -> str:
    """Return the summary of a verdict as Markdown, for the comment of a pull request."""
    values = {"run": result["run"], "against": result["against"]}
    title = _("Gate: %(run)s against %(against)s") % values
    header = [_("measure"), _("old"), _("new"), _("change"), _("interval"), _("if judged at worst"), _("at best"), ""]
    lines = [
        f"## {title}: **{verdict_title(result['verdict'])}**",
        "",
        explain_verdict(result),
        "",
        f"| {' | '.join(header)} |",
        f"|---|{'---:|' * 6}---|",
    ]
    for name, outcome in measures_in_order(result).items():
        figures = [f"{outcome['old']:.4f}", f"{outcome['new']:.4f}", f"{outcome['change']:+.4f}"]
        spans = [
            f"{outcome['low']:+.4f} … {outcome['high']:+.4f}",
            f"{outcome['lowest']:+.4f}",
            f"{outcome['highest']:+.4f}",
        ]
        lines.append(f"| {' | '.join([name, *figures, *spans, verdict_title(outcome['verdict'])])} |")
    lines += ["", describe_basis(result), ""]
    return "\n".join(lines)


def describe_basis(result: Document) -> str:
    """Return what a verdict was measured on, in a sentence or two."""
    drop = next(iter(result["measures"].values()))["max_drop"]
    values = {
        "queries": f"{result['queries']:,}",
        "number": result["qrels"],
        "drop": f"{drop:g}",
        "confidence": f"{1 - result['level']:.4g}",
        "new": result["missing"]["run"],
        "old": result["missing"]["against"],
        "others": result["unmeasured"],
    }
    sentences = [
        _("%(queries)s queries of qrels %(number)s; largest drop %(drop)s; intervals at %(confidence)s.") % values
    ]
    if result["weights"] != "plain":
        message = _("Queries weigh as often as the query log counts them; %(without)s without a count weigh 1.")
        sentences.append(message % {"without": f"{result['without_count']:,}"})
    if values["new"] or values["old"]:
        sentences.append(
            _("Queries without documents count 0: %(new)s of the new run, %(old)s of the old one.") % values
        )
    # Verdicts stored earlier have no such numbers.
    outdated = result.get("outdated", {})
    if any(outdated.values()):
        message = _(
            "Unjudged because their text has changed since: %(run)s documents of the new run, %(against)s of the old "
            "one. Make these runs again, or measure by the qrels of that time."
        )
        sentences.append(message % outdated)
    if values["others"]:
        sentences.append(_("Queries of the runs without any judgment are left out: %(others)s.") % values)
    if not all(outcome["is_exact"] for outcome in result["measures"].values()):
        sentences.append(_("The bounds of AP may be wider than judgments can reach."))
    return " ".join(sentences)


def as_junit(result: Document) -> str:
    """Return a verdict as JUnit XML: a test case for each measure; "cannot tell" is an error."""
    measures = measures_in_order(result)
    counts = {
        "tests": len(measures),
        "failures": sum(outcome["verdict"] == FAIL for outcome in measures.values()),
        "errors": sum(outcome["verdict"] not in (PASS, FAIL) for outcome in measures.values()),
    }
    attributes = {"name": "quorum.gate", **{key: str(count) for key, count in counts.items()}}
    suites = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(suites, "testsuite", attributes)
    for name, outcome in measures.items():
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"{result['run']} against {result['against']}", name=name, time="0"
        )
        figures = (
            f"change {outcome['change']:+.4f}, interval {outcome['lowest']:+.4f} to {outcome['highest']:+.4f} over all "
        )
        text = f"{figures}ways to judge; limit {-outcome['max_drop']:+.4f}"
        if outcome["verdict"] != PASS:
            tag = "failure" if outcome["verdict"] == FAIL else "error"
            kind = outcome["cause"] or "drop"
            ElementTree.SubElement(case, tag, message=text, type=kind).text = explain_verdict(result)
        else:
            ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
