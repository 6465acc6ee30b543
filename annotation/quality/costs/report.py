"""The money of a campaign, for command and page: ledger, people, cost per correct label."""

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
from judges.costs.accounting import Paid, of_status
from judges.costs.collection_budgets import CollectionBudget, collection_budget
from judges.costs.ledger import LedgerRow, Sum
from judges.domain.audits import OVERLAP
from judges.engine.plan import LABEL_NOTHING
from judges.models import Campaign
from store.sql import fetch_row, read_sql

GOLD = read_sql(__file__, "count_gold")

NO_AUDIT = gettext_noop("not measured: no audit is completed yet")


@dataclass(frozen=True, slots=True)
class HumanCost:
    """People's work on one campaign: judgments on its escalated pairs and on its audits, at the median time of one."""

    settling: int
    auditing: int
    seconds: float | None
    hourly_rate: float | None

    @classmethod
    def of(cls, collection: Collection, counts: Mapping[str, float], seconds: float | None) -> "HumanCost":
        """Return people's work on the campaign with these counters. `seconds`: the median time of a judgment."""
        # By settled pairs, each judged by `overlap` people: judgments on pairs that are still open come later.
        settling, auditing = counts.get("settled", 0) * collection.overlap, counts.get("audited", 0) * OVERLAP
        return cls(int(settling), int(auditing), seconds, collection.hourly_rate)

    @property
    def hours(self) -> float:
        """Return the hours that people worked, without pauses."""
        return (self.settling + self.auditing) * (self.seconds or 0.0) / 3600

    @property
    def paid(self) -> Paid:
        """Return the cost of people's work at the collection's hourly rate."""
        judgments = self.settling + self.auditing
        if not judgments:
            return Paid(0.0)
        if self.seconds is None:
            unknown = _("no time recorded for %(judgments)s judgments")
            return Paid(None, (unknown % {"judgments": f"{judgments:,}"},))
        if self.hourly_rate is None:
            return Paid(
                None, (_("%(hours)s hours of people's work without an hourly rate") % {"hours": f"{self.hours:,.1f}"},)
            )
        return Paid(self.hours * self.hourly_rate)


@dataclass(frozen=True)
class CostReport:
    """Costs of a campaign, of judges and people. `pairs` is None where there are too many calls to list them."""

    collection: Collection
    campaign: Campaign
    status: dict[str, Any]
    entries: list[LedgerRow]
    days: list[dict[str, Any]]
    pairs: list[dict[str, Any]] | None
    people: HumanCost
    labels: list[PerLabel]
    caps: CollectionBudget
    spent: float  # USD that count against the campaign's budget: with what is assumed of calls of unknown cost.

    @property
    def machine(self) -> Paid:
        return of_status(self.status)

    @property
    def together(self) -> Paid:
        return self.machine + self.people.paid

    @property
    def wasted(self) -> Sum:
        """Calls that brought nothing: unparsed, refused, out of range, failed."""
        return ledger.sum_rows(_("without a verdict"), [entry for entry in self.entries if entry.outcome != "labelled"])

    @property
    def by_judge(self) -> list[Sum]:
        return sorted(ledger.sum_by(self.entries, lambda entry: entry.judge), key=lambda one: one.name)

    @property
    def by_step(self) -> list[Sum]:
        """Sums by what was asked: rounds of the debate, votes and others."""
        return ledger.sum_by(self.entries, lambda entry: entry.step)

    @property
    def groups(self) -> list[tuple[str, str, list[Sum]]]:
        """Return the three cost tables: heading, header of the first column, lines."""
        by_outcome = ledger.sum_by(self.entries, lambda entry: entry.outcome)
        return [
            (_("By judge"), _("Judge"), self.by_judge),
            (_("By round"), _("By kind of call"), self.by_step),
            (_("By outcome of the call"), _("Outcome"), by_outcome),
        ]


def cost_report(campaign: Campaign, *, most: int | None = None) -> CostReport:
    """The money of the campaign; pairs are read up to `most` calls (None: always)."""
    collection = campaign.collection
    status = selectors.campaign_status(collection, campaign)
    counts = counters.read(campaign.pk)
    people = HumanCost.of(collection, counts, median_seconds(collection))
    # Costs by pair read every call; the command takes that time, a page does not.
    few = most is None or status["calls"] + status["calls_cached"] <= most
    return CostReport(
        collection=collection,
        campaign=campaign,
        status=status,
        entries=ledger.ledger_rows(campaign),
        days=ledger.daily_costs(campaign),
        pairs=ledger.costs_by_outcome(campaign) if few else None,
        people=people,
        labels=_costs_per_label(campaign, status, counts, people),
        caps=collection_budget(collection),
        spent=counters.total_cost(counts),
    )


def _costs_per_label(
    campaign: Campaign, status: dict[str, Any], counts: dict[str, float], people: HumanCost
) -> list[PerLabel]:
    """Four figures: judges' labels, and all with people's work; each by gold and by audits."""
    # Evidence and retrieval give no labels by which their cost could be divided.
    if campaign.policy in LABEL_NOTHING:
        return []
    audits = measure_audits(campaign.collection, campaign, counts)
    of_judges, of_all = costs_by_audits(status, counts, people, audits)
    known, right, known_people, right_people = _count_gold(campaign)
    # Two strata, because gold covers the judges' labels and people's in different shares.
    settled = of_all.labels - of_judges.labels
    judged = Stratum(of_judges.labels, known, right)
    whole = Stratum(settled, known_people, right_people)
    ours, all_of = _describe_labels(of_judges.labels, settled)
    words = _("%(known)s of %(ours)s have gold labels") % {"known": f"{known:,}", "ours": ours}
    words_all = _("%(known)s of %(all_of)s have gold labels") % {"known": f"{known + known_people:,}", "all_of": all_of}
    return [
        per_label(JUDGES, "gold", of_judges.labels, of_judges.paid, against_gold([judged]), words),
        of_judges,
        per_label(TOGETHER, "gold", of_all.labels, of_all.paid, against_gold([judged, whole]), words_all),
        of_all,
    ]


def costs_by_audits(
    status: Mapping[str, Any], counts: Mapping[str, float], people: HumanCost, audits: Audits | None
) -> tuple[PerLabel, PerLabel]:
    """Return what a correct label cost by audits: judges' labels, and all with people."""
    machine = of_status(status)
    labelled, settled = sum(status["labels"].values()), int(counts.get("settled", 0))
    audited = audits.overall if audits else Statistic(None, None, None, 0, NO_AUDIT)
    covered = audits.covered if audits else 0.0  # The share of labels for whose routes the audits speak.
    ours, _rest = _describe_labels(labelled, settled)
    values = {"ours": ours, "n": f"{audited.n:,}", "covered": f"{covered:.0%}"}
    was_audited = _("%(n)s of %(ours)s were audited") % values
    if 0 < covered < 1:
        was_audited = _("%(n)s of %(ours)s were audited, covering routes with %(covered)s of the labels") % values
    by_people = _("the %(settled)s labels by people count as correct") % {"settled": f"{settled:,}"}
    with_settled, by_all = f"{was_audited}; {by_people}", (labelled + settled, machine + people.paid)
    return (
        per_label(JUDGES, "audits", labelled, machine, audited, was_audited),
        per_label(TOGETHER, "audits", *by_all, with_people(audited, labelled, settled), with_settled),
    )


def _describe_labels(labelled: int, settled: int) -> tuple[str, str]:
    ours = _("%(labelled)s labels by judges") % {"labelled": f"{labelled:,}"}
    return ours, _("%(ours)s and %(settled)s by people") % {"ours": ours, "settled": f"{settled:,}"}


def _count_gold(campaign: Campaign) -> Sequence[int]:
    collection = campaign.collection
    return fetch_row(GOLD, campaign=campaign.pk, collection=collection.pk, relevant=collection.relevant_from)


SPENT = (
    *("calls", "calls_cached", "calls_failed", "calls_without_price", "calls_assumed"),
    *("cost", "cost_assumed", "tokens"),
)


def build_json_document(found: CostReport) -> dict[str, Any]:
    """The report as the command prints it with --json; USD, None: unknown."""
    status, people = found.status, found.people
    return {
        "collection": found.collection.name,
        "campaign": found.campaign.number,
        "policy": status["policy"],
        "state": status["state"],
        "stopped_by": status.get("stopped_by", ""),
        **{key: status[key] for key in SPENT},
        "cost_is_lower_bound": found.machine.at_least,
        **{
            key: [{**asdict(one), **_paid_document(one.paid)} for one in lines]
            for key, (_title, _head, lines) in zip(("by_judge", "by_round", "by_outcome"), found.groups, strict=True)
        },
        "by_pair": None if found.pairs is None else [_part_document(one) for one in found.pairs],
        "by_day": [_part_document(one) | {"day": one["day"].isoformat()} for one in found.days],
        "people": {
            "judgments": people.settling + people.auditing,
            "hours": people.hours,
            "hourly_rate": people.hourly_rate,
            **_paid_document(people.paid),
        },
        "together": _paid_document(found.together),
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
            for label in found.labels
        ],
        "caps": {**asdict(found.caps), "day": found.caps.day.isoformat()},
        "ledger": [{**asdict(entry), "cost": entry.paid.usd} for entry in found.entries],
    }


def _paid_document(paid: Paid) -> dict[str, Any]:
    return {"cost": paid.usd, "cost_is_lower_bound": paid.at_least, "not_in_it": list(paid.missing)}


def _part_document(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key != "paid"} | _paid_document(one["paid"])
