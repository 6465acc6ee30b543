"""Self-checks of judges: known ordering and repeatability, stored, so that pages and campaigns can say what they were.

Beside the built-in probes a collection asks pairs of its own: relevant against not relevant by its reference.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Min, Q
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotation.models.self_checks import SelfCheck
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, CurrentJudgment, Pair, Query
from jobs import background, notifications, workers
from jobs.connections import without_connection
from judges.campaigns.configurations import find_panel
from judges.engine.plan import records_of
from judges.models import JudgeVersion, Panel
from judges.probes import self_check as asking
from judges.probes.known_orders import ANSWERS, ELSEWHERE, Probe, built_in
from judges.records import Inputs, Judge

OWN = 8  # Queries of the collection that are asked, where its reference has a relevant and another pair for them.
REPEATS = 2
TASK = "annotation.self_check"
LARGE = 1_000  # Pairs from which a campaign asks whether its judges were checked.


@dataclass(frozen=True, slots=True)
class SelfCheckState:
    """The newest self-check of a judge's present version; `row` None: there was none."""

    judge: str
    row: SelfCheck | None

    @property
    def summary(self) -> str:
        """The self-check in a few words."""
        if self.row is None:
            return _("not checked yet")
        found, when = self.row.findings, date_format(self.row.created_at, "SHORT_DATE_FORMAT")
        if not self.row.passes:
            return _("failed on %(when)s: %(problems)s") % {"when": when, "problems": "; ".join(found["problems"])}
        order = _("%(right)s of %(all)s in the expected order") % {
            "right": found["clear"]["right"],
            "all": sum(found["clear"][how] for how in ("right", "tied", "reversed")),
        }
        values = {"when": when, "order": order, "repeated": found["repeated"], "repeats": found["repeats"]}
        return _("passed on %(when)s: %(order)s, %(repeated)s of %(repeats)s repeated") % values

    @property
    def document(self) -> dict[str, Any] | None:
        """The self-check as programs read it; None where there was none."""
        if self.row is None:
            return None
        found = {"passes": self.row.passes, "at": self.row.created_at.isoformat()}
        return found | {"problems": self.row.findings["problems"]}


def panel_judges(panel: str | None) -> tuple[Panel, list[JudgeVersion]]:
    """The panel, or the default one, and its judges in their present versions. Raises BadInput."""
    found = find_panel(panel)
    names = list(dict.fromkeys([*found.ensemble, *found.debate, *filter(None, [found.adjudicator])]))
    # The offline debaters argue and cannot vote.
    return found, [
        row for row in current_versions(names) if not (row.provider == "offline" and row.model in ("for", "against"))
    ]


def current_versions(names: Iterable[str]) -> list[JudgeVersion]:
    """Return present versions of judges, in the names' order. BadInput: unknown name."""
    names = list(names)
    known = {row.name: row for row in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    if missing := [name for name in names if name not in known]:
        raise BadInput(_("There is no judge %(join)s: load it with configure_judges") % {"join": ", ".join(missing)})
    return [known[name] for name in names]


def collection_probes(collection: Collection) -> tuple[Probe, ...]:
    """Return the built-in probes, without and with the collection's definition."""
    answers = Query.objects.filter(collection=collection, is_current=True).exclude(answers=[]).exists()
    return (*built_in(answers=answers), *_own_probes(collection))


def _own_probes(collection: Collection) -> list[Probe]:
    """A relevant and a not relevant pair of each of the first queries that have both, by id: the same each time."""
    reference = Q(assessor__kind=Assessor.Kind.REFERENCE, aspect=None)
    graded = CurrentJudgment.objects.filter(reference, pair__collection=collection, pair__query__is_current=True)
    graded = graded.filter(pair__document__is_current=True)
    sides = graded.filter(grade__gte=collection.relevant_from), graded.filter(grade__lt=collection.relevant_from)
    # Where references differ on a pair, nobody knows its place in the order (docs/judge.md).
    relevant, other = (one.exclude(pair__in=two.values("pair")) for one, two in (sides, sides[::-1]))
    both = relevant.filter(pair__query__in=other.values("pair__query"))
    queries = list(both.order_by("pair__query").values_list("pair__query", flat=True).distinct()[:OWN])
    firsts = [
        dict(rows.filter(pair__query__in=queries).values_list("pair__query").annotate(Min("pair")))
        for rows in (relevant, other)
    ]
    ids = [pair for side in firsts for pair in side.values()]
    pairs = Pair.objects.select_related("query", "document").in_bulk(ids)

    def inputs(pair: Pair) -> Inputs:
        asked, text = pair.query, pair.document
        definition = collection.relevance.of(asked)
        return Inputs(asked.text, tuple(asked.answers), text.title, text.text, definition, collection.pk, text.pk)

    return [
        Probe(
            f"query-{query}",
            tuple(
                (level, inputs(pairs[side[query]])) for level, side in zip((ANSWERS, ELSEWHERE), firsts, strict=True)
            ),
            own=True,
        )
        for query in queries
    ]


def self_check(
    collection: Collection,
    judges: Sequence[JudgeVersion],
    asked: Sequence[Probe],
    *,
    done: Callable[[int], None] = lambda count: None,
) -> list[SelfCheck]:
    """Ask the judges and store the results, in the order of the judges."""
    records = records_of(judges)
    with without_connection():
        results = asking.self_check(records, asked, repeats=REPEATS, done=done)
    return [
        SelfCheck.objects.create(
            collection=collection,
            judge=row,
            passes=found.passes,
            findings={
                **asdict(found),
                "problems": list(found.problems),
                **{name: getattr(checked, name) for name in ("calls", "cost", "error")},
            },
        )
        for row, (checked, found) in zip(judges, results, strict=True)
    ]


def ask_later(collection: Collection, judges: Sequence[JudgeVersion]) -> None:
    """Let a worker run the self-check of these judges. Raises BadInput without a worker, and while one runs already."""
    if notifications.is_away():
        raise BadInput(_("Redis is not responding, so no worker can run this: try again when it is back"))
    # Somebody asked for it and sees its cost: they learn at once that nobody would do it.
    if not workers.live_workers():
        raise BadInput(_("No worker is running: start one, or use the command"))
    _job, is_new = background.enqueue(TASK, collection.pk, judges=[row.pk for row in judges])
    if not is_new:
        raise BadInput(_("self-check running: results within minutes"))


def run_later(collection: int, judges: Sequence[int]) -> None:
    """Ask the judges, in a worker; quiet without the collection. Changed ones are left out."""
    found = Collection.objects.filter(pk=collection).first()
    rows = list(JudgeVersion.objects.filter(pk__in=judges, is_current=True).order_by("name"))
    if found is not None and rows:
        self_check(found, rows, collection_probes(found))


def newest_self_checks(collection: Collection, names: Iterable[str]) -> dict[str, SelfCheckState]:
    """Read the newest self-check of judges' present versions, by name. One statement."""
    names = list(names)
    rows = SelfCheck.objects.filter(collection=collection, judge__name__in=names, judge__is_current=True)
    newest = rows.order_by("judge", "-id").distinct("judge").select_related("judge")
    found = {row.judge.name: row for row in newest}
    return {name: SelfCheckState(name, found.get(name)) for name in names}


def unchecked_judges(collection: Collection, judges: Iterable[Judge]) -> list[SelfCheckState]:
    """Return judges that never passed here; offline judges, known as weak, are not named."""
    names = dict.fromkeys(judge.name for judge in judges if judge.provider != "offline")
    return [one for one in newest_self_checks(collection, names).values() if one.row is None or not one.row.passes]


def build_json_document(rows: Sequence[SelfCheck]) -> list[dict[str, Any]]:
    """Build the document for --json."""
    return [{"name": row.judge.name, "passes": row.passes, **row.findings} for row in rows]
