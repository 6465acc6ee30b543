"""The blind study of reference answers (BRIGHT-Pro appendix D): its draw, people's answers, and their ratings.

A member reserves a query and writes an answer from the same passages as the model. Then two others,
never the writer, rate both answers. The order in which a rater sees them is drawn from the study's
seed for each query and rater.
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
from judges.prompts.answers.agents import find_citations

QUERIES = 40
RATERS = 2
RESERVED = timedelta(hours=24)  # Afterwards another person may take the query.
LONGEST = 20_000  # Characters of an answer.
Grades = tuple[int, int]  # Completeness and quality of one answer, each from 1 to 5.


def studies_of(collection: Collection) -> QuerySet[ReferenceStudy]:
    """Return the studies of a collection, the newest first."""
    return ReferenceStudy.objects.filter(collection=collection).select_related("job").order_by("-pk")


def open_study(collection: Collection) -> ReferenceStudy | None:
    """Return the study that is open for writing and rating, if any."""
    return studies_of(collection).filter(closed_at=None).first()


def find_candidates(collection: Collection) -> tuple[AgentJob | None, list[int]]:
    """Return the newest reference job, and its answers that a study can use, in the order of the query ids."""
    job = jobs.newest_job(collection, AgentJob.Kind.REFERENCE)
    if job is None:
        return None, []
    rows = ReferenceAnswer.objects.filter(job=job, problem="", query__in=queries_with_passages(collection))
    return job, list(rows.order_by("query__external_id").values_list("pk", flat=True))


@transaction.atomic
def start_study(collection: Collection, *, queries: int, seed: int, by: str) -> ReferenceStudy:
    """Start a study with randomly drawn queries. Raises BadInput if one is open or there are too few answers."""
    # If two admins start at once, the second waits here and then finds the first one's study.
    hold(Collection.objects, collection.pk)
    if open_study(collection) is not None:
        raise BadInput(_("A study is open. Close it before you start another one."))
    job, candidates = find_candidates(collection)
    if job is None or not 1 <= queries <= len(candidates):
        message = _("%(count)d queries have a reference answer. Choose a number of queries from 1 to %(count)d.")
        raise BadInput(message % {"count": len(candidates)})
    # The name is part of the seed, so that two collections with one seed draw independently.
    sample = set(random.Random(f"{seed}/{collection.name}").sample(candidates, queries))
    # In the order of the queries, not of the draw: people work through them in a stable order.
    references = [key for key in candidates if key in sample]
    return ReferenceStudy.objects.create(collection=collection, job=job, seed=seed, references=references, made_by=by)


def close_study(collection: Collection) -> ReferenceStudy | None:
    """Close the open study and return it; None if no study is open."""
    study = open_study(collection)
    # The update filters again, so that of two admins who close it at once only one succeeds.
    is_closed = study and ReferenceStudy.objects.filter(pk=study.pk, closed_at=None).update(closed_at=timezone.now())
    return study if is_closed else None


def count_progress(study: ReferenceStudy) -> dict[str, int]:
    """Count a study's queries, its written answers, and the answers with all their ratings."""
    return {
        "queries": len(study.references),
        "written": _completed_answers(study).count(),
        "rated": len(_rated_by(study, RATERS)),
    }


def _completed_answers(study: ReferenceStudy) -> QuerySet[StudyAnswer]:
    return StudyAnswer.objects.filter(study=study, written_at__isnull=False)


def _rated_by(study: ReferenceStudy, people: int) -> list[int]:
    """Return the answers rated by at least so many people; withdrawn ratings do not count."""
    rows = StudyRating.objects.filter(answer__study=study, withdrawal=None).values("answer")
    return list(rows.annotate(count=Count("pk")).filter(count__gte=people).values_list("answer", flat=True))


def reserved_for(study: ReferenceStudy, writer: Assessor) -> StudyAnswer | None:
    """Return the answer row of the query that this person is writing about, if any."""
    rows = StudyAnswer.objects.select_related("reference__query", "study")
    return rows.filter(study=study, writer=writer, written_at=None).first()


def count_free(study: ReferenceStudy) -> int:
    """Count the queries that are free to write about."""
    return len(study.references) - _taken_answers(study).count()


def _taken_answers(study: ReferenceStudy) -> QuerySet[StudyAnswer]:
    """Return the answers that are written or reserved."""
    recent = Q(written_at__isnull=False) | Q(reserved_at__gt=timezone.now() - RESERVED)
    return StudyAnswer.objects.filter(recent, study=study)


@transaction.atomic
def reserve_query(study: ReferenceStudy, writer: Assessor) -> StudyAnswer | None:
    """Return the query reserved for the writer, or reserve the next free one; None if none is free.

    Raises BadInput if the study is closed.
    """
    _lock_open(study)
    if (answer := reserved_for(study, writer)) is not None:
        # Opening the page again renews the reservation.
        StudyAnswer.objects.filter(pk=answer.pk).update(reserved_at=timezone.now())
        return answer
    taken_references = set(_taken_answers(study).values_list("reference", flat=True))
    reference = next((key for key in study.references if key not in taken_references), None)
    if reference is None:
        return None
    values = {"writer": writer, "reserved_at": timezone.now()}
    # An expired reservation leaves its row, which the next writer takes over.
    answer, _created = StudyAnswer.objects.update_or_create(study=study, reference_id=reference, defaults=values)
    return answer


@transaction.atomic
def release_query(study: ReferenceStudy, writer: Assessor) -> None:
    """Release the query reserved by a writer, so that another person can write about it."""
    _lock_open(study)
    StudyAnswer.objects.filter(study=study, writer=writer, written_at=None).delete()


def passages_of(answer: StudyAnswer) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Return the query's aspects as (text, importance), and their passages as (document id, text)."""
    collection, query = answer.study.collection, answer.reference.query_id
    aspects = load_query_aspects(collection, [query]).get(query, [])
    passages = load_passages(collection, aspects)
    weighted_aspects = [(aspect.text, aspect.importance) for aspect in aspects]
    return weighted_aspects, [(key, text) for key, (text, _aspects) in passages.items()]


@transaction.atomic
def write_answer(study: ReferenceStudy, writer: Assessor, text: str) -> StudyAnswer:
    """Store a person's final answer. Raises BadInput for wrong citations, or if the reservation has expired."""
    _lock_open(study)
    answer = reserved_for(study, writer)
    if answer is None:
        raise BadInput(_("No query is reserved for you any more. Copy your text, then reserve a query again."))
    # Only the passages on the page may be cited; the collection may have more.
    passage_ids = {key for key, _text in passages_of(answer)[1]}
    citations, unknown = find_citations(text, passage_ids)
    if unknown:
        message = _("These are not ids of passages on this page: %(ids)s. Cite a passage by its id in square brackets.")
        raise BadInput(message % {"ids": ", ".join(unknown[:5])})
    if passage_ids and not citations:
        raise BadInput(_("The answer cites no passage. Cite a passage by its id in square brackets."))
    answer.answer, answer.citations, answer.written_at = _normalize_text(text), citations, timezone.now()
    answer.save(update_fields=["answer", "citations", "written_at"])
    return answer


def _normalize_text(text: str) -> str:
    """Remove line endings and trailing blanks, by which raters could tell a form's text from a model's."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def is_model_first(study: ReferenceStudy, answer: StudyAnswer, rater: Assessor) -> bool:
    """Return whether this rater sees the model's answer to this query first."""
    # Drawn from ids alone, so that the order is the same on every page load and in the analysis.
    return random.Random(f"{study.seed}/{study.pk}/{answer.reference_id}/{rater.pk}").random() < 0.5


def shown_answers(study: ReferenceStudy, answer: StudyAnswer, rater: Assessor) -> list[str]:
    """Return the model's and the person's text, in the order in which this rater sees them."""
    texts = [_normalize_text(answer.reference.answer), _normalize_text(answer.answer)]
    return texts if is_model_first(study, answer, rater) else texts[::-1]


def answers_to_rate(study: ReferenceStudy, rater: Assessor) -> QuerySet[StudyAnswer]:
    """Return the answers of others that this person may rate and that lack a rating, once-rated ones first."""
    own_ratings = StudyRating.objects.filter(answer__study=study, rater=rater, withdrawal=None)
    rows = _completed_answers(study).exclude(writer=rater).exclude(pk__in=own_ratings.values("answer"))
    # The second rating of an answer comes before the first of another: the study needs pairs of raters.
    once_rated_first = Case(When(pk__in=_rated_by(study, 1), then=0), default=1)
    unrated = rows.exclude(pk__in=_rated_by(study, RATERS)).order_by(once_rated_first, "pk")
    return unrated.select_related("reference__query", "study__collection")


@transaction.atomic
def rate_answers(study: ReferenceStudy, rater: Assessor, answer: int, first: Grades, second: Grades) -> StudyRating:
    """Store a person's grades of the first and the second answer shown. Raises BadInput if not allowed."""
    _lock_open(study)
    study_answer = answers_to_rate(study, rater).filter(pk=answer).first()
    if study_answer is None:
        # Another person was faster, or this one clicked twice: nothing is lost.
        raise BadInput(_("This query needs no rating from you any more. Rate the next one."))
    model_first = is_model_first(study, study_answer, rater)
    # The form has the first and the second answer, the table the model's and the person's.
    model, person = (first, second) if model_first else (second, first)
    return StudyRating.objects.create(
        answer=study_answer,
        rater=rater,
        model_first=model_first,
        model_completeness=model[0],
        model_quality=model[1],
        person_completeness=person[0],
        person_quality=person[1],
    )


def last_rating(study: ReferenceStudy, rater: Assessor) -> StudyRating | None:
    """Return this person's newest rating that was not withdrawn."""
    rows = StudyRating.objects.filter(answer__study=study, rater=rater, withdrawal=None)
    return rows.select_related("answer__reference__query").order_by("-pk").first()


@transaction.atomic
def undo_rating(study: ReferenceStudy, rater: Assessor) -> StudyRating | None:
    """Withdraw the person's last rating and return it; None without one. Raises BadInput if the study is closed."""
    _lock_open(study)
    rating = last_rating(study, rater)
    if rating is not None:
        # Ratings are append-only: another row withdraws this one.
        StudyWithdrawal.objects.create(rating=rating)
    return rating


def _lock_open(study: ReferenceStudy) -> None:
    """Lock a study, so that changes are made one at a time. Raises BadInput if it is closed."""
    if not ReferenceStudy.objects.select_for_update().filter(pk=study.pk, closed_at=None).exists():
        raise BadInput(_("This study is closed. Answers and ratings are no longer taken."))
