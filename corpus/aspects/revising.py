"""Actions on the aspects of a query and on the documents under them: each appends a revision, none overwrites.

A document is kept under an aspect, or discarded, by a judgment of the pair and the aspect: the
lowest relevant grade keeps it, 0 discards it. The judgments of each pair and aspect form one chain
across all assessors, so that the newest one applies and undo can withdraw exactly the judgments of
an action.
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
    """A decision to keep a document under an aspect, or not to, with the reason. `keep` None: withdrawn."""

    document: int
    aspect: str
    keep: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AspectChange:
    """The result of an action: the new set of aspects, and the decisions on documents."""

    entries: Entries
    decisions: Sequence[RevisionDecision] = ()
    note: str = ""


class LockedAspectSet:
    """The current aspects of a query that is locked against other revisions."""

    def __init__(self, query: Query, newest: AspectRevision | None) -> None:
        self.query = query
        self.newest = newest
        self.rows = {row.external_id: row for row in Aspect.objects.filter(query=query)}
        self.entries = load_aspects(newest.aspects) if newest else ()

    def current_judgments(self, ids: Iterable[str]) -> dict[tuple[int, str], Judgment]:
        """Return the current judgments under these aspects by (document, aspect)."""
        judgments = Judgment.objects.filter(aspect__query=self.query, aspect__external_id__in=list(ids))
        current = judgments.heads().select_related("pair", "aspect")
        return {
            (judgment.pair.document_id, judgment.aspect.external_id): judgment
            for judgment in current
            if judgment.aspect
        }

    def revise(self, author: Assessor, act: Act, change: AspectChange) -> AspectRevision:
        """Append a revision of the query's aspects. Raises BadInput when nothing changes."""
        revision = _append_revision(self, author, act, change)
        if change.entries == self.entries and not revision.judgments:
            raise BadInput(_("No changes made."))
        return revision


def lock_aspects(query: Query, base: int | None = None) -> LockedAspectSet:
    """Lock the query's aspects until the commit. Raises BadInput for an old text of the query, or a newer revision."""
    # The weaker lock, which allows inserts of rows that refer to the query by a foreign key.
    locked_query = hold(Query.objects, query.pk, no_key=True)
    if not locked_query.is_current:
        raise BadInput(_("The query has a newer text. Open it from the list."))
    newest = newest_revision(locked_query)
    if base is not None and base != (newest.number if newest else 0):
        raise BadInput(
            _(
                "Another person changed these aspects while you were editing. Your changes were "
                "not saved. See the latest version."
            )
        )
    return LockedAspectSet(locked_query, newest)


def newest_revision(query: Query) -> AspectRevision | None:
    """Return the newest revision; None for a query without revisions."""
    return AspectRevision.objects.filter(query=query).order_by("-number").first()


def _append_revision(
    aspect_set: LockedAspectSet,
    author: Assessor,
    act: Act,
    change: AspectChange,
    undoes: AspectRevision | None = None,
) -> AspectRevision:
    """Append a revision to the history of a query's aspects.

    1. Update the query's rows of aspects to the new set.
    2. Append the judgments of the decisions that change something.
    3. Store the revision, and resolve the labels of the judged pairs.
    """
    query, entries = aspect_set.query, change.entries
    if entries != aspect_set.entries or any(entry.id not in aspect_set.rows for entry in entries):
        # Rows that left the set stay, because judgments refer to them (docs/adr/0029).
        query.aspects.exclude(external_id__in=[entry.id for entry in entries]).update(is_current=False)
        Aspect.objects.bulk_create(
            [
                Aspect(
                    query=query, external_id=entry.id, text=entry.text, rationale=entry.rationale,
                    importance=entry.importance, place=position, is_current=True,
                )
                for position, entry in enumerate(entries)
            ],
            update_conflicts=True,
            unique_fields=["query", "external_id"],
            update_fields=["text", "rationale", "importance", "place", "is_current"],
        )  # fmt: skip
    judgments = _append_judgments(aspect_set, author, change.decisions) if change.decisions else []
    revision = AspectRevision.objects.create(
        query=query,
        number=(aspect_set.newest.number if aspect_set.newest else 0) + 1,
        act=act,
        note=change.note,
        aspects=[asdict(entry) for entry in entries],
        judgments=[judgment.pk for judgment in judgments],
        undoes=undoes,
        author=author,
    )
    resolve_pairs({judgment.pair_id for judgment in judgments})
    return revision


def _append_judgments(
    aspect_set: LockedAspectSet, author: Assessor, decisions: Sequence[RevisionDecision]
) -> list[Judgment]:
    """Append the judgments that change something, and return them."""
    current = aspect_set.current_judgments({decision.aspect for decision in decisions})
    query, documents = aspect_set.query, {decision.document for decision in decisions}
    known_documents = Document.objects.filter(pk__in=documents, collection_id=query.collection_id)
    if set(known_documents.values_list("pk", flat=True)) != documents:
        raise BadInput(_("One of these documents is no longer in the collection. See the latest version."))
    # A document without a pair gets one that is not assigned to anyone.
    Pair.objects.bulk_create(
        [Pair(collection_id=query.collection_id, query=query, document_id=pk, is_candidate=False) for pk in documents],
        ignore_conflicts=True,
    )
    pairs = dict(Pair.objects.filter(query=query, document__in=documents).values_list("document", "pk"))
    # All aspects that the query ever had.
    rows = {row.external_id: row for row in Aspect.objects.filter(query=query)}
    step = Judgment.Step.FINAL if author.kind == Assessor.Kind.PERSON else Judgment.Step.IMPORT
    collection = query.collection
    relevant_grade, guideline = collection.relevant_from, collection.guideline_version
    judgments = []
    for decision in decisions:
        if decision.aspect not in rows:
            raise BadInput(_("Aspect %(id)s no longer exists. See the latest version.") % {"id": decision.aspect})
        superseded = current.get((decision.document, decision.aspect))
        grade = None if decision.keep is None else relevant_grade if decision.keep else 0
        if _grade_and_reason(superseded) == (grade, decision.reason):
            continue
        judgments.append(
            Judgment.objects.create(
                pair_id=pairs[decision.document], aspect=rows[decision.aspect], assessor=author, step=step,
                grade=grade, supersedes=superseded, comment=decision.reason,
                guideline=guideline,
            )
        )  # fmt: skip
    return judgments


def _grade_and_reason(judgment: Judgment | None) -> tuple[int | None, str]:
    return (None, "") if judgment is None else (judgment.grade, judgment.comment)


@transaction.atomic
def add_aspect(query: Query, author: Assessor, wording: Wording, *, base: int | None = None) -> AspectRevision:
    """Add an aspect to a query."""
    aspect_set = lock_aspects(query, base)
    (name,) = sets.next_ids(aspect_set.rows, 1)
    return aspect_set.revise(author, Act.ADD, AspectChange(sets.add(aspect_set.entries, name, wording), note=name))


@transaction.atomic
def clarify_aspect(
    query: Query, author: Assessor, aspect: str, wording: Wording, *, base: int | None = None
) -> AspectRevision:
    """Reword an aspect; its documents stay."""
    aspect_set = lock_aspects(query, base)
    return aspect_set.revise(
        author, Act.CLARIFY, AspectChange(sets.clarify(aspect_set.entries, aspect, wording), note=aspect)
    )


@transaction.atomic
def weigh_aspects(
    query: Query, author: Assessor, importances: Mapping[str, int], *, base: int | None = None
) -> AspectRevision:
    """Set importances, by the aspects' ids."""
    aspect_set = lock_aspects(query, base)
    return aspect_set.revise(author, Act.WEIGH, AspectChange(sets.weigh(aspect_set.entries, importances)))


@transaction.atomic
def remove_aspect(query: Query, author: Assessor, aspect: str, *, base: int | None = None) -> AspectRevision:
    """Remove an aspect; documents that supported only this one must be reviewed again."""
    aspect_set = lock_aspects(query, base)
    return aspect_set.revise(author, Act.REMOVE, AspectChange(sets.remove(aspect_set.entries, aspect), note=aspect))


@transaction.atomic
def merge_aspects(
    query: Query, author: Assessor, aspects: Sequence[str], wording: Wording, *, base: int | None = None
) -> AspectRevision:
    """Merge several aspects into one, with every document kept under any of them."""
    aspect_set = lock_aspects(query, base)
    (name,) = sets.next_ids(aspect_set.rows, 1)
    entries = sets.merge(aspect_set.entries, aspects, name, wording)
    decisions: dict[int, RevisionDecision] = {}
    for (document, _aspect), judgment in aspect_set.current_judgments(aspects).items():
        keeps = bool(judgment.grade)
        # A document that is kept under any of them is kept; it is discarded only if kept under none.
        if judgment.grade is not None and (keeps or document not in decisions):
            decisions[document] = RevisionDecision(document, name, keeps, "" if keeps else judgment.comment)
    note = f"{', '.join(dict.fromkeys(aspects))} → {name}"
    return aspect_set.revise(author, Act.MERGE, AspectChange(entries, list(decisions.values()), note))


@transaction.atomic
def split_aspect(
    query: Query, author: Assessor, aspect: str, parts: Sequence[Wording], *, base: int | None = None
) -> AspectRevision:
    """Split an aspect. Discarded documents stay discarded; kept ones must be reviewed again."""
    aspect_set = lock_aspects(query, base)
    names = sets.next_ids(aspect_set.rows, len(parts))
    entries = sets.split(aspect_set.entries, aspect, list(zip(names, parts, strict=True)))
    decisions = [
        RevisionDecision(document, name, False, judgment.comment)
        for (document, _aspect), judgment in aspect_set.current_judgments([aspect]).items()
        for name in names
        if judgment.grade == 0
    ]
    return aspect_set.revise(author, Act.SPLIT, AspectChange(entries, decisions, f"{aspect} → {', '.join(names)}"))


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
    """Apply the changes of a second person's review: importances, or decisions on documents."""
    aspect_set = lock_aspects(query, base)
    change = AspectChange(sets.weigh(aspect_set.entries, importances or {}), decisions, note)
    return aspect_set.revise(author, Act.REVIEW, change)


def earlier_revision(query: Query) -> AspectRevision | None:
    """Return the newest set of an earlier text of the query; a query with a new text begins without aspects."""
    older = AspectRevision.objects.filter(
        query__collection_id=query.collection_id, query__external_id=query.external_id, query__is_current=False
    )
    return older.exclude(aspects=[]).order_by("-pk").first()


@transaction.atomic
def copy_earlier_aspects(query: Query, author: Assessor, *, base: int | None = None) -> AspectRevision:
    """Copy the aspects of the query's earlier text, with existing documents' decisions."""
    aspect_set = lock_aspects(query, base)
    old = earlier_revision(aspect_set.query)
    if old is None or aspect_set.entries:
        raise BadInput(_("There are no aspects to copy. See the latest version."))
    entries = load_aspects(old.aspects)
    judgments = CurrentJudgment.objects.filter(
        aspect__query=old.query_id, aspect__external_id__in=[entry.id for entry in entries],
        pair__document__is_current=True,
    ).values_list("pair__document", "aspect__external_id", "grade", "comment")  # fmt: skip
    decisions = [RevisionDecision(document, name, bool(grade), comment) for document, name, grade, comment in judgments]
    return aspect_set.revise(author, Act.IMPORT, AspectChange(entries, decisions, f"version {old.query.version}"))


def undoable_revision(query: Query) -> AspectRevision | None:
    """Return the newest revision that can be undone; imports are included."""
    return AspectRevision.objects.filter(query=query, undone_by=None).exclude(act=Act.UNDO).order_by("-number").first()


@transaction.atomic
def undo_revision(query: Query, author: Assessor, number: int) -> AspectRevision:
    """Undo the newest revision. Raises BadInput unless its number is `number`, the one that the author saw."""
    aspect_set = lock_aspects(query)
    last = undoable_revision(aspect_set.query)
    if last is None or last.number != number:
        raise BadInput(_("This is no longer the latest action. See the history."))
    judgments = Judgment.objects.filter(pk__in=last.judgments).select_related("pair", "aspect", "supersedes")
    decisions = []
    for judgment in judgments:
        # The judgment before it applies again.
        grade, reason = _grade_and_reason(judgment.supersedes)
        aspect = judgment.aspect.external_id if judgment.aspect else ""
        keeps = None if grade is None else grade > 0
        decisions.append(RevisionDecision(judgment.pair.document_id, aspect, keeps, reason))
    previous = AspectRevision.objects.filter(query=aspect_set.query, number=last.number - 1).first()
    entries = load_aspects(previous.aspects) if previous else ()
    change = AspectChange(entries, decisions, note=str(last.number))
    return _append_revision(aspect_set, author, Act.UNDO, change, undoes=last)
