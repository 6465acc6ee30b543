"""Reports on the judges' calls: how many answers were usable, and which setting helps if some were not."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from judges.models import JudgeVersion
from judges.records import limit_answer
from store.sql import fetch_rows

OUTCOMES = """
SELECT l.campaign_id, l.judge_id, l.outcome, sum(l.calls)::bigint, sum(l.calls_cached)::bigint
FROM judges_ledger l WHERE l.campaign_id = ANY(%(campaigns)s) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
ANSWERED = "answered:"  # Prefix of the counters of calls that another model answered (judges.costs.counters).


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """A judge's calls in a campaign, by result."""

    judge: str
    model: str
    max_output_tokens: int
    calls: int = 0
    usable: int = 0  # Including answers from the cache.
    truncated: int = 0
    refused: int = 0
    unusable: int = 0  # Answers that do not follow the schema.
    prompt_cut: int = 0
    failed: int = 0

    @property
    def document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "max_output_tokens"}

    @property
    def sentence(self) -> str:
        """Description of the answers that were lost, with remedies; "" if all were usable."""
        values = {name: f"{getattr(self, name):,}" for name in ("truncated", "refused", "unusable", "prompt_cut")}
        values["now"] = f"{self.max_output_tokens:,}"
        losses = {
            "truncated": _(
                "%(truncated)s truncated: raise max_output_tokens, now %(now)s; for answers that repeat themselves, "
                "take another model or temperature"
            ),
            "prompt_cut": _("%(prompt_cut)s about a prompt that the server cut: raise its context length"),
            "refused": _("%(refused)s refused by the model or its provider's filter"),
            "unusable": _("%(unusable)s not in the form that was asked for: check the judge for the key that helps"),
        }
        loss_notes = [words % values for name, words in losses.items() if getattr(self, name)]
        if not loss_notes and (self.usable or self.failed == self.calls):
            return ""
        summary = ngettext(
            "%(judge)s: %(calls)s call, %(usable)s usable", "%(judge)s: %(calls)s calls, %(usable)s usable", self.calls
        )
        summary %= {"judge": self.judge, "calls": f"{self.calls:,}", "usable": f"{self.usable:,}"}
        return "; ".join([summary, *loss_notes])


FIELDS = {"labelled": "usable", "unparsed": "unusable", "out_of_range": "unusable", "error": "failed"}  # By outcome.
COUNTS = ("calls", "usable", "truncated", "refused", "unusable", "prompt_cut", "failed")


def judge_reports(campaigns: Iterable[int]) -> dict[int, list[JudgeReport]]:
    """Return the reports of each campaign's judges, by name. Two statements."""
    counts: dict[tuple[int, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    if not (campaigns := list(campaigns)):
        return {}
    for campaign, judge_id, outcome, calls, cached in fetch_rows(OUTCOMES, campaigns=campaigns):
        judge_counts = counts[campaign, judge_id]
        judge_counts["calls"] += int(calls)
        judge_counts[FIELDS.get(outcome, outcome)] += int(calls + (cached if outcome == "labelled" else 0))
    judges = JudgeVersion.objects.in_bulk({judge_id for _campaign, judge_id in counts}) if counts else {}
    reports: dict[int, list[JudgeReport]] = defaultdict(list)
    for (campaign, judge_id), judge_counts in counts.items():
        judge = judges[judge_id]
        reports[campaign].append(JudgeReport(judge.name, judge.model, limit_answer(judge.parameters), **judge_counts))
    return {
        campaign: sorted(campaign_reports, key=lambda report: report.judge)
        for campaign, campaign_reports in reports.items()
    }


def join_reports(campaigns: Iterable[Iterable[JudgeReport]]) -> list[JudgeReport]:
    """Add up campaigns' reports, for each judge with the same model and limit of tokens."""
    totals: dict[tuple[str, str, int], JudgeReport] = {}
    for report in (report for reports in campaigns for report in reports):
        key = (report.judge, report.model, report.max_output_tokens)
        total = totals.get(key, JudgeReport(*key))
        counts = {name: getattr(total, name) + getattr(report, name) for name in COUNTS}
        totals[key] = replace(total, **counts)
    return [totals[key] for key in sorted(totals)]


def other_models(sums: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the calls that another model than the judge's answered, from a campaign's counters."""
    keys = sorted(key for key in sums if key.startswith(ANSWERED))
    parts = {key: key.removeprefix(ANSWERED).partition(":") for key in keys}
    judges = JudgeVersion.objects.in_bulk([int(part[0]) for part in parts.values()]) if keys else {}
    rows = [(judges[int(pk)], model, int(sums[key])) for key, (pk, _colon, model) in parts.items()]
    return [
        {"judge": judge.name, "model": judge.model, "answered": model, "calls": calls} for judge, model, calls in rows
    ]


def describe_reports(reports: Iterable[JudgeReport], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Describe each judge's lost answers, with remedies, and the other models that answered."""
    notes = [report.sentence for report in reports if report.sentence]
    for row in others:
        note = ngettext(
            "%(judge)s (%(model)s): %(calls)s call was answered by %(answered)s, another model",
            "%(judge)s (%(model)s): %(calls)s calls were answered by %(answered)s, another model",
            row["calls"],
        )
        notes.append(note % {**row, "calls": f"{row['calls']:,}"})
    return notes
