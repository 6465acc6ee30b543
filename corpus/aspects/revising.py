"""Acts on the aspects of a query and on the documents under them: each appends a revision, none overwrites.

A document stands under an aspect by a judgment of the pair and the aspect: the grade from which on
documents are relevant keeps it, 0 discards it. Such judgments form one chain for each pair and
aspect, whoever gave them, so that the newest word holds and undo can take back exactly what an act
gave.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.aspects import entries as sets
from corpus.aspects.entries import Entries, Wording, load_aspects
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.labels import resolve_pairs
from corpus.models import Assessor, CurrentJudgment, Document, Judgment, Pair, Query
from corpus.models.aspects import Aspect, AspectRevision

Act = AspectRevision.Act


@dataclass(frozen=True, slots=True)
class RevisionDecision:
    """A document stands under an aspect (`keep`), or it does not, with the reason. None: nobody says so any more."""

    document: int
    aspect: str
    keep: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AspectChange:
    """The result of an act: the set of aspects after it, and its decisions on documents."""

    entries: Entries
    decisions: Sequence[RevisionDecision] = ()
    note: str = ""


class Held:
    """A query that nobody else can revise at the moment, and its aspects as they stand."""

    def __init__(self, query: Query, newest: AspectRevision | None) -> None:
        self.query = query
        self.newest = newest
        self.rows = {row.external_id: row for row in Aspect.objects.filter(query=query)}
        self.entries = load_aspects(newest.aspects) if newest else ()

    def current_judgments(self, ids: Iterable[str]) -> dict[tuple[int, str], Judgment]:
        """Return (document, aspect) to the judgment that holds, for these aspects."""
        said = Judgment.objects.filter(aspect__query=self.query, aspect__external_id__in=list(ids))
        found = said.heads().select_related("pair", "aspect")
        return {(one.pair.document_id, one.aspect.external_id): one for one in found if one.aspect}

    def revise(self, author: Assessor, act: Act, change: AspectChange) -> AspectRevision:
        """Append a revision of the query's aspects. Raises BadInput when nothing changes."""
        revision = _append_revision(self, author, act, change)
        if change.entries == self.entries and not revision.judgments:
            raise BadInput(_("No changes made."))
        return revision


def lock_aspects(query: Query, base: int | None = None) -> Held:
    """Lock the query's aspects until the commit. Raises BadInput for an old text of the query, or a newer revision."""
    # The weaker lock: rows that point to the query by a foreign key may come in meanwhile.
    locked = hold(Query.objects, query.pk, no_key=True)
    if not locked.is_current:
        raise BadInput(_("The query has a newer text. Open it from the list."))
    newest = newest_revision(locked)
    if base is not None and base != (newest.number if newest else 0):
        raise BadInput(
            _(
                "Another person changed these aspects while you were editing. Your changes were "
                "not saved. See the latest version."
            )
        )
    return Held(locked, newest)


def newest_revision(query: Query) -> AspectRevision | None:
    """Return the revision that holds; None for a query whose aspects nobody touched here."""
    return AspectRevision.objects.filter(query=query).order_by("-number").first()


def _append_revision(
    held: Held, author: Assessor, act: Act, change: AspectChange, undoes: AspectRevision | None = None
) -> AspectRevision:
    rows = _update_rows(held, change.entries)
    judgments = _append_judgments(held, author, rows, change.decisions)
    revision = AspectRevision.objects.create(
        query=held.query,
        number=(held.newest.number if held.newest else 0) + 1,
        act=act,
        note=change.note,
        aspects=[asdict(entry) for entry in change.entries],
        judgments=[judgment.pk for judgment in judgments],
        undoes=undoes,
        author=author,
    )
    resolve_pairs({judgment.pair_id for judgment in judgments})
    return revision


def _update_rows(held: Held, entries: Entries) -> Mapping[str, Aspect]:
    """Bring the query's rows up to the set; return all rows that it ever had, by id."""
    if entries != held.entries or any(entry.id not in held.rows for entry in entries):
        rows = [
            Aspect(
                query=held.query, external_id=e.id, text=e.text, rationale=e.rationale,
                importance=e.importance, place=place, is_current=True,
            )
            for place, e in enumerate(entries)
        ]  # fmt: skip
        # Rows that left the set stay: judgments hang on them (docs/adr/0029).
        held.query.aspects.exclude(external_id__in=[e.id for e in entries]).update(is_current=False)
        Aspect.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["query", "external_id"],
            update_fields=["text", "rationale", "importance", "place", "is_current"],
        )
    return {row.external_id: row for row in Aspect.objects.filter(query=held.query)}


def _append_judgments(
    held: Held, author: Assessor, rows: Mapping[str, Aspect], decisions: Sequence[RevisionDecision]
) -> list[Judgment]:
    """Append the judgments that change something, and return them."""
    if not decisions:
        return []
    standing = held.current_judgments({decision.aspect for decision in decisions})
    query, documents = held.query, {decision.document for decision in decisions}
    known = Document.objects.filter(pk__in=documents, collection_id=query.collection_id)
    if set(known.values_list("pk", flat=True)) != documents:
        raise BadInput(_("One of these documents is no longer in the collection. See the latest version."))
    # A document that is no pair of the query becomes one that nobody is asked to judge.
    Pair.objects.bulk_create(
        [Pair(collection_id=query.collection_id, query=query, document_id=pk, is_candidate=False) for pk in documents],
        ignore_conflicts=True,
    )
    pairs = dict(Pair.objects.filter(query=query, document__in=documents).values_list("document", "pk"))
    step = Judgment.Step.FINAL if author.kind == Assessor.Kind.PERSON else Judgment.Step.IMPORT
    collection = held.query.collection
    kept, guideline = collection.relevant_from, collection.guideline_version
    judgments = []
    for decision in decisions:
        if decision.aspect not in rows:
            raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": decision.aspect})
        before = standing.get((decision.document, decision.aspect))
        grade = None if decision.keep is None else kept if decision.keep else 0
        if _grade_and_reason(before) == (grade, decision.reason):
            continue
        judgments.append(
            Judgment.objects.create(
                pair_id=pairs[decision.document], aspect=rows[decision.aspect], assessor=author, step=step,
                grade=grade, supersedes=before, comment=decision.reason,
                guideline=guideline,
            )
        )  # fmt: skip
    return judgments


def _grade_and_reason(judgment: Judgment | None) -> tuple[int | None, str]:
    return (None, "") if judgment is None else (judgment.grade, judgment.comment)


@transaction.atomic
def add_aspect(query: Query, author: Assessor, wording: Wording, *, base: int | None = None) -> AspectRevision:
    """Add an aspect to a query."""
    held = lock_aspects(query, base)
    (name,) = sets.next_ids(held.rows, 1)
    return held.revise(author, Act.ADD, AspectChange(sets.add(held.entries, name, wording), note=name))


@transaction.atomic
def clarify_aspect(
    query: Query, author: Assessor, aspect: str, wording: Wording, *, base: int | None = None
) -> AspectRevision:
    """Reword an aspect; its documents stay."""
    held = lock_aspects(query, base)
    return held.revise(author, Act.CLARIFY, AspectChange(sets.clarify(held.entries, aspect, wording), note=aspect))


@transaction.atomic
def weigh_aspects(
    query: Query, author: Assessor, given: Mapping[str, int], *, base: int | None = None
) -> AspectRevision:
    """Set importances, by the aspects' ids."""
    held = lock_aspects(query, base)
    return held.revise(author, Act.WEIGH, AspectChange(sets.weigh(held.entries, given)))


@transaction.atomic
def remove_aspect(query: Query, author: Assessor, aspect: str, *, base: int | None = None) -> AspectRevision:
    """Remove an aspect; documents that supported it alone are to be reviewed again."""
    held = lock_aspects(query, base)
    return held.revise(author, Act.REMOVE, AspectChange(sets.remove(held.entries, aspect), note=aspect))


@transaction.atomic
def merge_aspects(
    query: Query, author: Assessor, aspects: Sequence[str], wording: Wording, *, base: int | None = None
) -> AspectRevision:
    """Merge several aspects into one, with every document kept under any of them."""
    held = lock_aspects(query, base)
    (name,) = sets.next_ids(held.rows, 1)
    entries = sets.merge(held.entries, aspects, name, wording)
    decided: dict[int, RevisionDecision] = {}
    for (document, _aspect), judgment in held.current_judgments(aspects).items():
        keeps = bool(judgment.grade)
        # A document that any of them kept is kept; a discard holds only where none of them kept it.
        if judgment.grade is not None and (keeps or document not in decided):
            decided[document] = RevisionDecision(document, name, keeps, "" if keeps else judgment.comment)
    note = f"{', '.join(dict.fromkeys(aspects))} → {name}"
    return held.revise(author, Act.MERGE, AspectChange(entries, list(decided.values()), note))


@transaction.atomic
def split_aspect(
    query: Query, author: Assessor, aspect: str, parts: Sequence[Wording], *, base: int | None = None
) -> AspectRevision:
    """Split an aspect. Discarded documents stay so; kept ones are reviewed again."""
    held = lock_aspects(query, base)
    names = sets.next_ids(held.rows, len(parts))
    entries = sets.split(held.entries, aspect, list(zip(names, parts, strict=True)))
    discarded = [
        RevisionDecision(document, name, False, judgment.comment)
        for (document, _aspect), judgment in held.current_judgments([aspect]).items()
        for name in names
        if judgment.grade == 0
    ]
    return held.revise(author, Act.SPLIT, AspectChange(entries, discarded, f"{aspect} → {', '.join(names)}"))


@transaction.atomic
def apply_review(
    query: Query,
    author: Assessor,
    *,
    importances: Mapping[str, int] | None = None,
    decisions: Sequence[RevisionDecision] = (),
    note: str,
    base: int,
) -> AspectRevision:
    """Make the changes of a second person's review: weights, or where documents stand."""
    held = lock_aspects(query, base)
    change = AspectChange(sets.weigh(held.entries, importances or {}), decisions, note)
    return held.revise(author, Act.REVIEW, change)


def earlier_revision(query: Query) -> AspectRevision | None:
    """Return the newest set of an earlier text of the query: an import with a new text begins without aspects."""
    older = AspectRevision.objects.filter(
        query__collection_id=query.collection_id, query__external_id=query.external_id, query__is_current=False
    )
    return older.exclude(aspects=[]).order_by("-pk").first()


@transaction.atomic
def copy_earlier_aspects(query: Query, author: Assessor, *, base: int | None = None) -> AspectRevision:
    """Copy the aspects of the query's earlier text, with existing documents' decisions."""
    held = lock_aspects(query, base)
    old = earlier_revision(held.query)
    if old is None or held.entries:
        raise BadInput(_("There are no aspects to copy. See the latest version."))
    entries = load_aspects(old.aspects)
    said = CurrentJudgment.objects.filter(
        aspect__query=old.query_id, aspect__external_id__in=[entry.id for entry in entries],
        pair__document__is_current=True,
    ).values_list("pair__document", "aspect__external_id", "grade", "comment")  # fmt: skip
    decisions = [RevisionDecision(document, name, bool(grade), comment) for document, name, grade, comment in said]
    return held.revise(author, Act.IMPORT, AspectChange(entries, decisions, f"version {old.query.version}"))


def undoable_revision(query: Query) -> AspectRevision | None:
    """Return the newest standing act. Imports count: they may be taken back, too."""
    return AspectRevision.objects.filter(query=query, undone_by=None).exclude(act=Act.UNDO).order_by("-number").first()


@transaction.atomic
def undo_revision(query: Query, author: Assessor, number: int) -> AspectRevision:
    """Undo the newest revision; `number`: the one its author saw, else refused."""
    held = lock_aspects(query)
    last = undoable_revision(held.query)
    if last is None or last.number != number:
        raise BadInput(_("This is no longer the latest action. See the history."))
    given = Judgment.objects.filter(pk__in=last.judgments).select_related("pair", "aspect", "supersedes")
    decisions = []
    for judgment in given:
        # What held before it.
        grade, reason = _grade_and_reason(judgment.supersedes)
        aspect = judgment.aspect.external_id if judgment.aspect else ""
        keeps = None if grade is None else grade > 0
        decisions.append(RevisionDecision(judgment.pair.document_id, aspect, keeps, reason))
    previous = AspectRevision.objects.filter(query=held.query, number=last.number - 1).first()
    entries = load_aspects(previous.aspects) if previous else ()
    change = AspectChange(entries, decisions, note=str(last.number))
    return _append_revision(held, author, Act.UNDO, change, undoes=last)
