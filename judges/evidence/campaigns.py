"""Campaigns that write contribution and evidence of relevant pairs: who writes, who measures, what it costs.

They are campaigns like others (claims, cache, limits, budget, rows of attempts) and label nothing.
In their status `labelled` counts pairs with a good target, `escalated` those whose texts wait for a
person.
"""

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection
from judges.campaigns.configurations import Configuration
from judges.engine.plan import judge_of
from judges.evidence.quality import judged_as
from judges.models import Campaign, JudgeVersion
from judges.panels.offline_panel import ensure_writers
from judges.records import Judge
from store.sql import fetch_row, read_sql

COVERAGE = read_sql(__file__, "count_coverage")


def writer_configuration(writer: str, measure: str = "") -> Configuration:
    """Return the writer and the measuring judge in their present versions. Raises BadInput."""
    ensure_writers()
    judges = tuple(judge_named(name) for name in (writer, measure) if name)
    return Configuration(writer, Campaign.Policy.EVIDENCE.value, judges)


def judge_named(name: str) -> Judge:
    """Return a current judge by its name. Raises BadInput."""
    ensure_writers()
    version = JudgeVersion.objects.filter(name=name, is_current=True).first()
    if version is None:
        known = ", ".join(JudgeVersion.objects.filter(is_current=True).order_by("name").values_list("name", flat=True))
        raise BadInput(
            _("There is no judge %(name)s: load it with configure_judges; known are %(known)s")
            % {"name": f"{name!r}", "known": known}
        )
    return judge_of(version)


def score_meaning(wanted: Configuration) -> str:
    """Name what this configuration's scores mean: quality, fidelity to teacher, or nothing (no measuring judge)."""
    return judged_as(wanted.voters[1], wanted.voters[0]) if len(wanted.voters) > 1 else ""


def target_coverage(collection: Collection) -> dict[str, int]:
    """Count the relevant pairs of a collection that have texts to learn from, in one statement.

    `waiting`: their texts wait for a person, and no judge writes them again; `missing`: a judge could write about them.
    """
    positives, good, by_people, waiting = fetch_row(COVERAGE, collection=collection.pk)
    missing = positives - good - waiting
    return {"positives": positives, "good": good, "by_people": by_people, "waiting": waiting, "missing": missing}
