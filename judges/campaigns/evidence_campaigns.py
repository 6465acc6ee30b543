"""Campaigns that write contribution and evidence of relevant pairs: their writer and measuring judge, their coverage.

They are like other campaigns (leases, cache, limits, budget, rows of attempts) but do not label pairs. In their status,
`labelled` counts pairs with a good target, and `escalated` those whose texts wait for a person.
"""

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns.configurations import Configuration
from judges.costs.judge_records import judge_of
from judges.domain.evidence_quality import meaning_of_scores
from judges.models import Campaign, JudgeVersion
from judges.panels.offline_panel import ensure_writers
from judges.records import Judge
from store.sql import fetch_row, read_sql

COVERAGE = read_sql(__file__, "count_coverage")


def writer_configuration(writer: str, measure: str = "") -> Configuration:
    """Return the writer and the measuring judge in their current versions. Raises BadInput."""
    ensure_writers()
    judges = tuple(judge_named(name) for name in (writer, measure) if name)
    return Configuration(writer, Campaign.Policy.EVIDENCE.value, judges)


def judge_named(name: str) -> Judge:
    """Return a current judge by its name. Raises BadInput."""
    ensure_writers()
    version = JudgeVersion.objects.filter(name=name, is_current=True).first()
    if version is None:
        known_names = ", ".join(
            JudgeVersion.objects.filter(is_current=True).order_by("name").values_list("name", flat=True)
        )
        raise BadInput(
            _("There is no judge %(name)s: load it with configure_judges; known are %(known)s")
            % {"name": f"{name!r}", "known": known_names}
        )
    return judge_of(version)


def score_meaning(configuration: Configuration) -> str:
    """Return the meaning of the scores: quality, fidelity to teacher, or "" without a measuring judge."""
    return meaning_of_scores(configuration.voters[1], configuration.voters[0]) if len(configuration.voters) > 1 else ""


def target_coverage(collection: Collection) -> dict[str, int]:
    """Count the relevant pairs of a collection that have texts to train on.

    `waiting`: their texts wait for a person, and no judge writes them again; `missing`: a judge could write them.
    """
    positives, good, by_people, for_people = fetch_row(COVERAGE, collection=collection.pk)
    missing = positives - good - for_people
    return {"positives": positives, "good": good, "by_people": by_people, "waiting": for_people, "missing": missing}
