"""The blind study of reference answers (BRIGHT-Pro appendix D): its draw, people's answers, and their ratings.

A member reserves a query and writes an answer from the same passages as the model. Then two others,
never the writer, rate both answers. Which one is shown first is a coin of the study's seed for each
query and rater.
"""

import random
from datetime import timedelta

from django.db import transaction
from django.db.models import Case, Count, Q, QuerySet, When
from django.utils import timezone
from django.utils.translation import gettext as _

from benchmark.agents import jobs
from benchmark.agents.aspects import load_passages, load_query_aspects
from benchmark.agents.references import queries_with_passages
from benchmark.models import AgentJob, ReferenceAnswer, ReferenceStudy, StudyAnswer, StudyRating, StudyWithdrawal
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Assessor, Collection
from judges.conversations.agents import find_citations

QUERIES = 40
RATERS = 2
RESERVED = timedelta(hours=24)  # Afterwards another person may take the query.
LONGEST = 20_000  # Characters of an answer.
Grades = tuple[int, int]  # Completeness and quality of one answer, each from 1 to 5.


def studies_of(collection: Collection) -> QuerySet[ReferenceStudy]:
    """The studies of a collection, the newest first."""
    return ReferenceStudy.objects.filter(collection=collection).select_related("job").order_by("-pk")


def open_study(collection: Collection) -> ReferenceStudy | None:
    """The study in which people write and rate now."""
    return studies_of(collection).filter(closed_at=None).first()


def find_candidates(collection: Collection) -> tuple[AgentJob | None, list[int]]:
    """The newest job of references, and its answers beside which people can write, by query id."""
    job = jobs.newest_job(collection, AgentJob.Kind.REFERENCE)
    if job is None:
        return None, []
    rows = ReferenceAnswer.objects.filter(job=job, problem="", query__in=queries_with_passages(collection))
    return job, list(rows.order_by("query__external_id").values_list("pk", flat=True))


@transaction.atomic
def start_study(collection: Collection, *, queries: int, seed: int, by: str) -> ReferenceStudy:
    """Start a study: draw its queries. Raises BadInput while a study is open, and with too few reference answers."""
    # Two admins who start at once: the second waits here, then finds the first one's study.
    hold(Collection.objects, collection.pk)
    if open_study(collection) is not None:
        raise BadInput(_("A study is open. Close it before you start another one."))
    job, candidates = find_candidates(collection)
    if job is None or not 1 <= queries <= len(candidates):
        told = _("%(count)d queries have a reference answer. Choose a number of queries from 1 to %(count)d.")
        raise BadInput(told % {"count": len(candidates)})
    # The name is part of the seed: two collections with one seed do not draw the same places.
    chosen = set(random.Random(f"{seed}/{collection.name}").sample(candidates, queries))
    # In the order of the queries, not of the draw: people work through them in a stable order.
    drawn = [key for key in candidates if key in chosen]
    return ReferenceStudy.objects.create(collection=collection, job=job, seed=seed, references=drawn, made_by=by)


def close_study(collection: Collection) -> ReferenceStudy | None:
    """End writing and rating; None where no study is open."""
    found = open_study(collection)
    # Filtered once more by the update: of two who close it at once, one does.
    closed = found and ReferenceStudy.objects.filter(pk=found.pk, closed_at=None).update(closed_at=timezone.now())
    return found if closed else None


def count_progress(study: ReferenceStudy) -> dict[str, int]:
    """Count a study's queries, its written answers, and those rated as often as wanted."""
    return {
        "queries": len(study.references),
        "written": _completed_answers(study).count(),
        "rated": len(_rated_by(study, RATERS)),
    }


def _completed_answers(study: ReferenceStudy) -> QuerySet[StudyAnswer]:
    return StudyAnswer.objects.filter(study=study, written_at__isnull=False)


def _rated_by(study: ReferenceStudy, people: int) -> list[int]:
    """The answers that so many people rated, or more; what was undone does not count."""
    rows = StudyRating.objects.filter(answer__study=study, withdrawal=None).values("answer")
    return list(rows.annotate(count=Count("pk")).filter(count__gte=people).values_list("answer", flat=True))


def reserved_for(study: ReferenceStudy, writer: Assessor) -> StudyAnswer | None:
    """Return the answer row of the query that this person is writing about, if any."""
    rows = StudyAnswer.objects.select_related("reference__query", "study")
    return rows.filter(study=study, writer=writer, written_at=None).first()


def count_free(study: ReferenceStudy) -> int:
    """Queries that somebody could write about."""
    return len(study.references) - _taken(study).count()


def _taken(study: ReferenceStudy) -> QuerySet[StudyAnswer]:
    """Answers that were written, or are reserved still."""
    recent = Q(written_at__isnull=False) | Q(reserved_at__gt=timezone.now() - RESERVED)
    return StudyAnswer.objects.filter(recent, study=study)


@transaction.atomic
def reserve_query(study: ReferenceStudy, writer: Assessor) -> StudyAnswer | None:
    """The person's open query, or the next free one; None where none is left. Raises BadInput once it is closed."""
    _lock_open(study)
    if (mine := reserved_for(study, writer)) is not None:
        # Coming back renews the reservation.
        StudyAnswer.objects.filter(pk=mine.pk).update(reserved_at=timezone.now())
        return mine
    taken = set(_taken(study).values_list("reference", flat=True))
    free = next((key for key in study.references if key not in taken), None)
    if free is None:
        return None
    values = {"writer": writer, "reserved_at": timezone.now()}
    # A reservation that ran out leaves its row: the next writer takes it over.
    found, _made = StudyAnswer.objects.update_or_create(study=study, reference_id=free, defaults=values)
    return found


@transaction.atomic
def release_query(study: ReferenceStudy, writer: Assessor) -> None:
    """Release the query reserved by a writer, so that another person can write about it."""
    _lock_open(study)
    StudyAnswer.objects.filter(study=study, writer=writer, written_at=None).delete()


def passages_of(answer: StudyAnswer) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """The aspects of the query with their importance, and their passages: (document id, text)."""
    collection, query = answer.study.collection, answer.reference.query_id
    aspects = load_query_aspects(collection, [query]).get(query, [])
    passages = load_passages(collection, aspects)
    return [(one.text, one.importance) for one in aspects], [(key, text) for key, (text, _own) in passages.items()]


@transaction.atomic
def write_answer(study: ReferenceStudy, writer: Assessor, text: str) -> StudyAnswer:
    """Store a person's answer for good. Raises BadInput where it cites badly, or the query is theirs no more."""
    _lock_open(study)
    found = reserved_for(study, writer)
    if found is None:
        raise BadInput(_("No query is reserved for you any more. Copy your text, then reserve a query again."))
    # What the page shows is what may be cited; the collection may hold more.
    known = {key for key, _text in passages_of(found)[1]}
    cited, unknown = find_citations(text, known)
    if unknown:
        told = _("These are not ids of passages on this page: %(ids)s. Cite a passage by its id in square brackets.")
        raise BadInput(told % {"ids": ", ".join(unknown[:5])})
    if known and not cited:
        raise BadInput(_("The answer cites no passage. Cite a passage by its id in square brackets."))
    found.answer, found.citations, found.written_at = _normalize_text(text), cited, timezone.now()
    found.save(update_fields=["answer", "citations", "written_at"])
    return found


def _normalize_text(text: str) -> str:
    """The text without what tells a form's text from a model's: line ends, blanks at the end."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def is_model_first(study: ReferenceStudy, answer: StudyAnswer, rater: Assessor) -> bool:
    """The coin for one query and one rater: whether the model's answer is shown first."""
    # Drawn from ids alone, so that it is the same coin on every page load and for the analysis.
    return random.Random(f"{study.seed}/{study.pk}/{answer.reference_id}/{rater.pk}").random() < 0.5


def shown_answers(study: ReferenceStudy, answer: StudyAnswer, rater: Assessor) -> list[str]:
    """Return the model's and the person's text, in the order in which this rater sees them."""
    texts = [_normalize_text(answer.reference.answer), _normalize_text(answer.answer)]
    return texts if is_model_first(study, answer, rater) else texts[::-1]


def answers_to_rate(study: ReferenceStudy, rater: Assessor) -> QuerySet[StudyAnswer]:
    """Return the answers that a person may rate: others' answers, with fewer than two ratings, begun ones first."""
    mine = StudyRating.objects.filter(answer__study=study, rater=rater, withdrawal=None)
    rows = _completed_answers(study).exclude(writer=rater).exclude(pk__in=mine.values("answer"))
    # A query that one person rated is finished before a new one is begun: pairs of raters are what the study needs.
    begun_first = Case(When(pk__in=_rated_by(study, 1), then=0), default=1)
    left = rows.exclude(pk__in=_rated_by(study, RATERS)).order_by(begun_first, "pk")
    return left.select_related("reference__query", "study__collection")


@transaction.atomic
def rate_answers(study: ReferenceStudy, rater: Assessor, answer: int, first: Grades, second: Grades) -> StudyRating:
    """Store a person's grades of the first and the other answer. BadInput if not allowed."""
    _lock_open(study)
    found = answers_to_rate(study, rater).filter(pk=answer).first()
    if found is None:
        # Closed by a second rater, or by their own click twice: nothing is lost.
        raise BadInput(_("This query needs no rating from you any more. Rate the next one."))
    model_first = is_model_first(study, found, rater)
    # The form speaks of the first and the second answer, the table of the model's and the person's.
    model, person = (first, second) if model_first else (second, first)
    return StudyRating.objects.create(
        answer=found,
        rater=rater,
        model_first=model_first,
        model_completeness=model[0],
        model_quality=model[1],
        person_completeness=person[0],
        person_quality=person[1],
    )


def last_rating(study: ReferenceStudy, rater: Assessor) -> StudyRating | None:
    """The newest rating of this person that was not undone."""
    rows = StudyRating.objects.filter(answer__study=study, rater=rater, withdrawal=None)
    return rows.select_related("answer__reference__query").order_by("-pk").first()


@transaction.atomic
def undo_rating(study: ReferenceStudy, rater: Assessor) -> StudyRating | None:
    """Withdraw the person's last rating; None without one. BadInput once closed."""
    _lock_open(study)
    found = last_rating(study, rater)
    if found is not None:
        # The rating stays, and a row beside it withdraws it: what people said is append-only.
        StudyWithdrawal.objects.create(rating=found)
    return found


def _lock_open(study: ReferenceStudy) -> None:
    """Lock a study, so that one change is made at a time. Raises BadInput once it is closed."""
    if not ReferenceStudy.objects.select_for_update().filter(pk=study.pk, closed_at=None).exists():
        raise BadInput(_("This study is closed. Answers and ratings are no longer taken."))
