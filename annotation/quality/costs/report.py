"""The costs of a campaign, for the command and the page: ledger, people's work, cost per correct label."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum
from annotation.quality.costs.labels import JUDGES, TOGETHER, PerLabel, against_gold, per_label, with_people
from annotation.quality.label_quality.audits import measure_audits
from annotation.quality.label_quality.records import Audits
from annotation.work.queue.judging_time import median_seconds
from corpus.models import Collection
from judges.campaigns import selectors
from judges.costs import counters, ledger
from judges.costs.accounting import Paid, format_hours, of_status
from judges.costs.collection_budgets import CollectionBudget, collection_budget
from judges.costs.ledger import LedgerRow, Sum
from judges.domain.audits import OVERLAP
from judges.engine.plan import LABEL_NOTHING
from judges.models import Campaign
from store.sql import fetch_row, read_sql

COUNT_GOLD = read_sql(__file__, "count_gold")

NO_AUDIT = gettext_noop("not measured: no audit is completed yet")


@dataclass(frozen=True, slots=True)
class HumanCost:
    """People's work on a campaign, at the median time of a judgment."""

    settling: int  # Number of judgments on escalated pairs.
    auditing: int  # Number of judgments in label audits.
    seconds: float | None  # Median time of a judgment.
    hourly_rate: float | None  # USD.

    @classmethod
    def of(cls, collection: Collection, counts: Mapping[str, float], seconds: float | None) -> "HumanCost":
        """Return people's work on the campaign with these counters. `seconds`: the median time of a judgment."""
        # Only judgments on resolved pairs are counted, each of which took `overlap` people.
        task_judgments = counts.get("settled", 0) * collection.overlap
        audit_judgments = counts.get("audited", 0) * OVERLAP
        return cls(int(task_judgments), int(audit_judgments), seconds, collection.hourly_rate)

    @property
    def hours(self) -> float:
        """Hours of work, without pauses."""
        return (self.settling + self.auditing) * (self.seconds or 0.0) / 3600

    @property
    def paid(self) -> Paid:
        """Cost of people's work at the collection's hourly rate."""
        judgments = self.settling + self.auditing
        if not judgments:
            return Paid(0.0)
        if self.seconds is None:
            reason = _("no time recorded for %(judgments)s judgments")
            return Paid(None, (reason % {"judgments": f"{judgments:,}"},))
        if self.hourly_rate is None:
            reason = _("%(time)s of people's work without an hourly rate")
            return Paid(None, (reason % {"time": format_hours(self.hours)},))
        return Paid(self.hours * self.hourly_rate)


@dataclass(frozen=True)
class CostReport:
    """Costs of a campaign, of judges and people. `pairs`: None where there are too many calls to list them."""

    collection: Collection
    campaign: Campaign
    status: dict[str, Any]
    entries: list[LedgerRow]
    days: list[dict[str, Any]]
    pairs: list[dict[str, Any]] | None
    people: HumanCost
    labels: list[PerLabel]
    caps: CollectionBudget
    spent: float  # USD that count against the campaign's budget, with assumed costs of calls of unknown cost.

    @property
    def machine(self) -> Paid:
        """Cost of the judges."""
        return of_status(self.status)

    @property
    def together(self) -> Paid:
        """Cost of judges and people."""
        return self.machine + self.people.paid

    @property
    def wasted(self) -> Sum:
        """Sum over calls without a verdict: unparsed, refused, out of range, failed."""
        return ledger.sum_rows(_("without a verdict"), [entry for entry in self.entries if entry.outcome != "labelled"])

    @property
    def by_judge(self) -> list[Sum]:
        """Sums by judge, by name."""
        return sorted(ledger.sum_by(self.entries, lambda entry: entry.judge), key=lambda judge_sum: judge_sum.name)

    @property
    def by_step(self) -> list[Sum]:
        """Sums by kind of call: rounds of the debate, votes and others."""
        return ledger.sum_by(self.entries, lambda entry: entry.step)

    @property
    def groups(self) -> list[tuple[str, str, list[Sum]]]:
        """The three cost tables: heading, header of the first column, lines."""
        by_outcome = ledger.sum_by(self.entries, lambda entry: entry.outcome)
        return [
            (_("By judge"), _("Judge"), self.by_judge),
            (_("By round"), _("By kind of call"), self.by_step),
            (_("By outcome of the call"), _("Outcome"), by_outcome),
        ]


def cost_report(campaign: Campaign, *, most: int | None = None) -> CostReport:
    """Return the costs of a campaign; those by pair only for up to `most` calls (None: always)."""
    collection = campaign.collection
    status = selectors.campaign_status(collection, campaign)
    counts = counters.read(campaign.pk)
    people = HumanCost.of(collection, counts, median_seconds(collection))
    # Costs by pair read every call, for which a page of a large campaign has no time.
    reads_pairs = most is None or status["calls"] + status["calls_cached"] <= most
    return CostReport(
        collection=collection,
        campaign=campaign,
        status=status,
        entries=ledger.ledger_rows(campaign),
        days=ledger.daily_costs(campaign),
        pairs=ledger.costs_by_outcome(campaign) if reads_pairs else None,
        people=people,
        labels=_costs_per_label(campaign, status, counts, people),
        caps=collection_budget(collection),
        spent=counters.total_cost(counts),
    )


def _costs_per_label(
    campaign: Campaign, status: dict[str, Any], counts: dict[str, float], people: HumanCost
) -> list[PerLabel]:
    """Return four costs per label: judges' labels, and all labels with people's work, each by gold and by audits."""
    # Campaigns that write evidence or retrieve give no labels.
    if campaign.policy in LABEL_NOTHING:
        return []
    audits = measure_audits(campaign.collection, campaign, counts)
    judges_cost, total_cost = costs_by_audits(status, counts, people, audits)
    judges_gold, judges_correct, people_gold, people_correct = _count_gold(campaign)
    # Two strata, because gold covers different shares of the judges' labels and of people's.
    resolved = total_cost.labels - judges_cost.labels
    judges_stratum = Stratum(judges_cost.labels, judges_gold, judges_correct)
    people_stratum = Stratum(resolved, people_gold, people_correct)
    judges_labels, all_labels = _describe_labels(judges_cost.labels, resolved)
    judges_words = _("%(known)s of %(ours)s have gold labels") % {"known": f"{judges_gold:,}", "ours": judges_labels}
    all_words = _("%(known)s of %(all_of)s have gold labels")
    all_words %= {"known": f"{judges_gold + people_gold:,}", "all_of": all_labels}
    judges_accuracy, accuracy = against_gold([judges_stratum]), against_gold([judges_stratum, people_stratum])
    return [
        per_label(JUDGES, "gold", judges_cost.labels, judges_cost.paid, judges_accuracy, judges_words),
        judges_cost,
        per_label(TOGETHER, "gold", total_cost.labels, total_cost.paid, accuracy, all_words),
        total_cost,
    ]


def costs_by_audits(
    status: Mapping[str, Any], counts: Mapping[str, float], people: HumanCost, audits: Audits | None
) -> tuple[PerLabel, PerLabel]:
    """Return the costs per correct label by audits: of judges' labels, and of all labels with people's work."""
    machine = of_status(status)
    labelled, resolved = sum(status["labels"].values()), int(counts.get("settled", 0))
    accuracy = audits.overall if audits else Statistic(None, None, None, 0, NO_AUDIT)
    covered = audits.covered if audits else 0.0  # Share of the labels whose routes have a resolved audit.
    judges_labels, _all_labels = _describe_labels(labelled, resolved)
    values = {"ours": judges_labels, "n": f"{accuracy.n:,}", "covered": f"{covered:.0%}"}
    judges_words = _("%(n)s of %(ours)s were audited") % values
    if 0 < covered < 1:
        judges_words = _("%(n)s of %(ours)s were audited, covering routes with %(covered)s of the labels") % values
    people_words = _("the %(settled)s labels by people count as correct") % {"settled": f"{resolved:,}"}
    return (
        per_label(JUDGES, "audits", labelled, machine, accuracy, judges_words),
        per_label(
            TOGETHER,
            "audits",
            labelled + resolved,
            machine + people.paid,
            with_people(accuracy, labelled, resolved),
            f"{judges_words}; {people_words}",
        ),
    )


def _describe_labels(labelled: int, resolved: int) -> tuple[str, str]:
    """Return words for the judges' labels, and for all labels."""
    judges_labels = _("%(labelled)s labels by judges") % {"labelled": f"{labelled:,}"}
    values = {"ours": judges_labels, "settled": f"{resolved:,}"}
    return judges_labels, _("%(ours)s and %(settled)s by people") % values


def _count_gold(campaign: Campaign) -> Sequence[int]:
    """Count labels with gold and correct ones: of judges, then of people."""
    collection = campaign.collection
    return fetch_row(COUNT_GOLD, campaign=campaign.pk, collection=collection.pk, relevant=collection.relevant_from)


STATUS_KEYS = (
    *("calls", "calls_cached", "calls_failed", "calls_without_price", "calls_assumed"),
    *("cost", "cost_assumed", "tokens"),
)


def build_json_document(report: CostReport) -> dict[str, Any]:
    """Return the report as JSON. Costs are in USD; None: unknown."""
    status, people = report.status, report.people
    return {
        "collection": report.collection.name,
        "campaign": report.campaign.number,
        "policy": status["policy"],
        "state": status["state"],
        "stopped_by": status.get("stopped_by", ""),
        **{key: status[key] for key in STATUS_KEYS},
        "cost_is_lower_bound": report.machine.at_least,
        **{
            key: [{**asdict(line), **_paid_document(line.paid)} for line in lines]
            for key, (_title, _head, lines) in zip(("by_judge", "by_round", "by_outcome"), report.groups, strict=True)
        },
        "by_pair": None if report.pairs is None else [_part_document(part) for part in report.pairs],
        "by_day": [_part_document(part) | {"day": part["day"].isoformat()} for part in report.days],
        "people": {
            "judgments": people.settling + people.auditing,
            "hours": people.hours,
            "hourly_rate": people.hourly_rate,
            **_paid_document(people.paid),
        },
        "together": _paid_document(report.together),
        "cost_per_correct_label": [
            {
                "labels_of": label.who,
                "correct_by": label.truth,
                "labels": label.labels,
                **_paid_document(label.paid),
                "accuracy": asdict(label.accuracy),
                "per_correct_label": asdict(label.cost),
                "population": label.population,
            }
            for label in report.labels
        ],
        "caps": {**asdict(report.caps), "day": report.caps.day.isoformat()},
        "ledger": [{**asdict(entry), "cost": entry.paid.usd} for entry in report.entries],
    }


def _paid_document(paid: Paid) -> dict[str, Any]:
    return {"cost": paid.usd, "cost_is_lower_bound": paid.at_least, "not_in_it": list(paid.missing)}


def _part_document(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "paid"} | _paid_document(part["paid"])
