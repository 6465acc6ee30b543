"""Self-checks of judges: known-order probes and repeatability, stored for pages and campaigns.

Beside the built-in probes a collection has its own: a relevant and a not relevant pair by its reference.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Min, Q
from django.utils.translation import gettext as _

from annotation.models.self_checks import SelfCheck
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, CurrentJudgment, Pair, Query
from corpus.reader_time import format_time
from jobs import background, notifications, workers
from jobs.connections import without_connection
from judges.campaigns.configurations import find_panel
from judges.costs.judge_records import records_of
from judges.models import JudgeVersion, Panel
from judges.probes import self_check as asking
from judges.probes.known_orders import ANSWERS, ELSEWHERE, Probe, built_in
from judges.records import Inputs, Judge

OWN = 8  # Number of queries in the collection's own probes.
REPEATS = 2
TASK = "annotation.self_check"
LARGE_CAMPAIGN_PAIRS = 1_000  # A campaign of this many pairs or more warns about judges that were not checked.


@dataclass(frozen=True, slots=True)
class SelfCheckState:
    """The newest self-check of a judge's current version; `row`: None if there is none."""

    judge: str
    row: SelfCheck | None

    @property
    def summary(self) -> str:
        """The result of the self-check in a few words."""
        if self.row is None:
            return _("not checked yet")
        findings, date = self.row.findings, format_time(self.row.created_at, "SHORT_DATE_FORMAT")
        if not self.row.passes:
            return _("failed on %(when)s: %(problems)s") % {"when": date, "problems": "; ".join(findings["problems"])}
        order = _("%(right)s of %(all)s in the expected order") % {
            "right": findings["clear"]["right"],
            "all": sum(findings["clear"][how] for how in ("right", "tied", "reversed")),
        }
        values = {"when": date, "order": order, "repeated": findings["repeated"], "repeats": findings["repeats"]}
        return _("passed on %(when)s: %(order)s, %(repeated)s of %(repeats)s repeated") % values

    @property
    def document(self) -> dict[str, Any] | None:
        """The self-check as JSON; None if there is none."""
        if self.row is None:
            return None
        return {
            "passes": self.row.passes,
            "at": self.row.created_at.isoformat(),
            "problems": self.row.findings["problems"],
        }


def panel_judges(name: str | None) -> tuple[Panel, list[JudgeVersion]]:
    """Return the panel of this name (None: the default), and the current versions of its judges. Raises BadInput."""
    panel = find_panel(name)
    judges = list(dict.fromkeys([*panel.ensemble, *panel.debate, *filter(None, [panel.adjudicator])]))
    # The offline debaters argue and cannot vote.
    return panel, [
        row for row in current_versions(judges) if not (row.provider == "offline" and row.model in ("for", "against"))
    ]


def current_versions(names: Iterable[str]) -> list[JudgeVersion]:
    """Return the current versions of judges, in the order of the names. Raises BadInput for an unknown name."""
    names = list(names)
    versions = {row.name: row for row in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    if missing := [name for name in names if name not in versions]:
        raise BadInput(_("There is no judge %(join)s: load it with configure_judges") % {"join": ", ".join(missing)})
    return [versions[name] for name in names]


def collection_probes(collection: Collection) -> tuple[Probe, ...]:
    """Return the built-in probes and the collection's own."""
    answers = Query.objects.filter(collection=collection, is_current=True).exclude(answers=[]).exists()
    # A relevant and a not relevant pair of each of the first queries that have both. The first by id, so that every
    # self-check asks the same.
    reference = Q(assessor__kind=Assessor.Kind.REFERENCE, aspect=None)
    graded = CurrentJudgment.objects.filter(reference, pair__collection=collection, pair__query__is_current=True)
    graded = graded.filter(pair__document__is_current=True)
    sides = graded.filter(grade__gte=collection.relevant_from), graded.filter(grade__lt=collection.relevant_from)
    # A pair on which references differ has no known order (docs/judge.md).
    relevant, other = (rows.exclude(pair__in=opposite.values("pair")) for rows, opposite in (sides, sides[::-1]))
    comparable = relevant.filter(pair__query__in=other.values("pair__query"))
    queries = list(comparable.order_by("pair__query").values_list("pair__query", flat=True).distinct()[:OWN])
    first_pairs = [
        dict(rows.filter(pair__query__in=queries).values_list("pair__query").annotate(Min("pair")))
        for rows in (relevant, other)
    ]
    ids = [pair for by_query in first_pairs for pair in by_query.values()]
    pairs = Pair.objects.select_related("query", "document").in_bulk(ids)
    probes = []
    for query_id in queries:
        documents = []
        for level, by_query in zip((ANSWERS, ELSEWHERE), first_pairs, strict=True):
            pair = pairs[by_query[query_id]]
            query, document = pair.query, pair.document
            inputs = Inputs(
                query.text,
                tuple(query.answers),
                document.title,
                document.text,
                collection.relevance.of(query),
                collection.pk,
                document.pk,
            )
            documents.append((level, inputs))
        probes.append(Probe(f"query-{query_id}", tuple(documents), own=True))
    return (*built_in(answers=answers), *probes)


def self_check(
    collection: Collection,
    judges: Sequence[JudgeVersion],
    probes: Sequence[Probe],
    *,
    done: Callable[[int], None] = lambda count: None,
) -> list[SelfCheck]:
    """Ask the judges, and store the results. `done`: called with the number of answers so far."""
    records = records_of(judges)
    with without_connection():
        results = asking.self_check(records, probes, repeats=REPEATS, done=done)
    return [
        SelfCheck.objects.create(
            collection=collection,
            judge=row,
            passes=findings.passes,
            findings={
                **asdict(findings),
                "problems": list(findings.problems),
                **{name: getattr(answers, name) for name in ("calls", "cost", "error")},
            },
        )
        for row, (answers, findings) in zip(judges, results, strict=True)
    ]


def ask_later(collection: Collection, judges: Sequence[JudgeVersion]) -> None:
    """Have a worker run the self-check of these judges. Raises BadInput without a worker, and while one is running."""
    if notifications.is_redis_unavailable():
        raise BadInput(_("Redis is not responding, so no worker can run this: try again when it is back"))
    # Whoever starts it sees its cost, so they should learn at once that it would not run.
    if not workers.live_workers():
        raise BadInput(_("No worker is running: start one, or use the command"))
    _job, is_new = background.enqueue(TASK, collection.pk, judges=[row.pk for row in judges])
    if not is_new:
        raise BadInput(_("self-check running: results within minutes"))


def run_later(collection: int, judges: Sequence[int]) -> None:
    """Run the self-check in a worker. Judges that have changed are left out; a deleted collection is ignored."""
    row = Collection.objects.filter(pk=collection).first()
    versions = list(JudgeVersion.objects.filter(pk__in=judges, is_current=True).order_by("name"))
    if row is not None and versions:
        self_check(row, versions, collection_probes(row))


def newest_self_checks(collection: Collection, names: Iterable[str]) -> dict[str, SelfCheckState]:
    """Read the newest self-check of each judge's current version, by name. One SQL statement."""
    names = list(names)
    rows = SelfCheck.objects.filter(collection=collection, judge__name__in=names, judge__is_current=True)
    newest = rows.order_by("judge", "-id").distinct("judge").select_related("judge")
    checks = {row.judge.name: row for row in newest}
    return {name: SelfCheckState(name, checks.get(name)) for name in names}


def unchecked_judges(collection: Collection, judges: Iterable[Judge]) -> list[SelfCheckState]:
    """Return the judges that have not passed their newest self-check, without offline judges, which are weak."""
    names = dict.fromkeys(judge.name for judge in judges if judge.provider != "offline")
    return [
        state for state in newest_self_checks(collection, names).values() if state.row is None or not state.row.passes
    ]


def build_json_document(rows: Sequence[SelfCheck]) -> list[dict[str, Any]]:
    """Return self-checks as JSON."""
    return [{"name": row.judge.name, "passes": row.passes, **row.findings} for row in rows]
