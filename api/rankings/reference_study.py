"""The study of reference answers: people write answers beside a model's, others rate both without their names."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status
from ninja.decorators import decorate_view

from annotation.audit_log.recording import record
from api.authentication import may, scope_of
from api.idempotency import once
from api.models import AccessToken
from api.problems import CleanText, Given
from api.routes.pages import Cursor, Limit, Page, page_of
from benchmark.agents import study
from benchmark.agents.sampling import SEED
from benchmark.agents.study import LONGEST, QUERIES, Grades
from benchmark.agents.study_results import measure_study
from benchmark.models import ReferenceStudy, StudyAnswer
from corpus.errors import BadInput
from corpus.models import Collection

router = Router(tags=["agents"])
MANAGE, JUDGE = AccessToken.TokenScope.MANAGE, AccessToken.TokenScope.JUDGE
Value = Annotated[int, Field(ge=1, le=5)]


class ReferenceStudyIn(Given):
    """Number of queries that people write about, and the seed that draws them."""

    queries: int = Field(QUERIES, ge=1, lt=1 << 31)
    seed: int = Field(SEED, ge=0, lt=1 << 31)


class ReferenceStudyOut(Schema):
    """A study of reference answers, how far it is, and what it found: a line for completeness and one for quality."""

    number: int
    seed: int
    created_at: datetime
    closed_at: datetime | None
    queries: int
    written: int
    rated: int
    results: list[dict[str, Any]]


class StudyAspectOut(Schema):
    """An aspect that an answer should cover."""

    text: str
    importance: int


class StudyPassageOut(Schema):
    """A passage that an answer may cite."""

    document: str
    text: str


class WritingOut(Schema):
    """The query that you write about, if one is reserved for you; and how many are free."""

    query: str | None
    text: str
    aspects: list[StudyAspectOut]
    passages: list[StudyPassageOut]
    free: int


class ReferenceTextIn(Given):
    """Your answer to the query that is reserved for you; passages are cited as [id]."""

    answer: Annotated[CleanText, Field(min_length=1, max_length=LONGEST)]


class GradesIn(Given):
    """Grades of an answer, from 1 to 5."""

    completeness: Value
    quality: Value


class RatingIn(Given):
    """Grades of the answer that was shown first and of the other."""

    answer: int = Field(ge=1, lt=1 << 63)
    first: GradesIn
    second: GradesIn


class RatingTaskOut(Schema):
    """Two answers to a query, in random order; `answer` goes with the grades. Null: nothing is left for you."""

    answer: int | None
    query: str
    text: str
    first: str
    second: str
    aspects: list[StudyAspectOut]
    waiting: int


@router.get("/collections/{slug:name}/reference-studies", auth=may("admin"), response=Page[ReferenceStudyOut])
def list_reference_studies(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the studies of reference answers with what they found, the oldest first."""
    return page_of(study.studies_of(scope_of(request).collection), after, limit, _show_study)


@router.post(
    "/collections/{slug:name}/reference-studies",
    auth=may("admin", MANAGE),
    response={201: ReferenceStudyOut},
)
@decorate_view(once)
def start_reference_study(request: HttpRequest, name: str, body: ReferenceStudyIn) -> Any:
    """Start a study: people write answers to queries that a model answered, and rate both."""
    scope = scope_of(request)
    with transaction.atomic():
        made = study.start_study(scope.collection, **body.dict(), by=scope.user.username)
        record(scope, "references.study", study=made.pk, what="start", **body.dict())
    # The database sets the time; the new object does not know it.
    made.refresh_from_db()
    return Status(201, _show_study(made))


@router.post(
    "/collections/{slug:name}/reference-studies/close",
    auth=may("admin", MANAGE),
    response=ReferenceStudyOut,
)
@decorate_view(once)
def close_reference_study(request: HttpRequest, name: str) -> Any:
    """Close the study that is open: no more answers and ratings are taken."""
    scope = scope_of(request)
    with transaction.atomic():
        closed = study.close_study(scope.collection)
        if closed is None:
            raise BadInput(_("No changes made: no study is open."))
        record(scope, "references.study", study=closed.pk, what="close")
    closed.refresh_from_db()
    return _show_study(closed)


@router.get("/collections/{slug:name}/reference-studies/writing", auth=may("judge"), response=WritingOut)
def read_writing(request: HttpRequest, name: str) -> Any:
    """Read the query of the open study that is reserved for you, with its aspects and passages."""
    return _show_writing(request, _require_open(scope_of(request).collection))


@router.post(
    "/collections/{slug:name}/reference-studies/writing",
    auth=may("judge", JUDGE),
    response=WritingOut,
)
@decorate_view(once)
def write_study_answer(request: HttpRequest, name: str, body: ReferenceTextIn) -> Any:
    """Store your answer for good."""
    scope = scope_of(request)
    found = _require_open(scope.collection)
    with transaction.atomic():
        made = study.write_answer(found, scope.member.assessor, body.answer)
        record(scope, "references.answered", study=found.pk, query=made.reference.query.external_id)
    return _show_writing(request, found)


@router.post(
    "/collections/{slug:name}/reference-studies/writing/{act}",
    auth=may("judge", JUDGE),
    response=WritingOut,
)
@decorate_view(once)
def reserve_study_query(request: HttpRequest, name: str, act: Literal["reserve", "release"]) -> Any:
    """Reserve a query to write about, or release the one that is reserved for you."""
    scope = scope_of(request)
    found = _require_open(scope.collection)
    if act == "release":
        study.release_query(found, scope.member.assessor)
    elif study.reserve_query(found, scope.member.assessor) is None:
        raise BadInput(_("Every query has an answer or is reserved for another person."))
    return _show_writing(request, found)


@router.get("/collections/{slug:name}/reference-studies/rating", auth=may("judge"), response=RatingTaskOut)
def read_rating(request: HttpRequest, name: str) -> Any:
    """Read two answers that you rate next, without whose they are."""
    return _show_rating(request, _require_open(scope_of(request).collection))


@router.post(
    "/collections/{slug:name}/reference-studies/rating",
    auth=may("judge", JUDGE),
    response=RatingTaskOut,
)
@decorate_view(once)
def rate_study_answers(request: HttpRequest, name: str, body: RatingIn) -> Any:
    """Rate both answers; the next ones come with the answer."""
    scope = scope_of(request)
    found = _require_open(scope.collection)
    first, second = (Grades(one.completeness, one.quality) for one in (body.first, body.second))
    with transaction.atomic():
        made = study.rate_answers(found, scope.member.assessor, body.answer, first, second)
        record(scope, "references.rated", study=found.pk, query=made.answer.reference.query.external_id)
    return _show_rating(request, found)


@router.post(
    "/collections/{slug:name}/reference-studies/rating/undo",
    auth=may("judge", JUDGE),
    response=RatingTaskOut,
)
@decorate_view(once)
def undo_study_rating(request: HttpRequest, name: str) -> Any:
    """Take your last rating back."""
    scope = scope_of(request)
    found = _require_open(scope.collection)
    with transaction.atomic():
        undone = study.undo_rating(found, scope.member.assessor)
        if undone is None:
            raise BadInput(_("There is no rating of yours to undo."))
        query = undone.answer.reference.query.external_id
        record(scope, "references.rated", study=found.pk, query=query, what="undo")
    return _show_rating(request, found)


def _require_open(collection: Collection) -> ReferenceStudy:
    found = study.open_study(collection)
    if found is None:
        raise BadInput(_("No study of reference answers is open."))
    return found


def _show_study(row: ReferenceStudy) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("seed", "created_at", "closed_at")}
    return {"number": row.pk, **shown, **study.count_progress(row), "results": measure_study(row)}


def _show_writing(request: HttpRequest, found: ReferenceStudy) -> dict[str, Any]:
    mine = study.reserved_for(found, scope_of(request).member.assessor)
    aspects, passages = study.passages_of(mine) if mine else ([], [])
    query = mine.reference.query if mine else None
    return {
        "query": query.external_id if query else None,
        "text": query.text if query else "",
        "aspects": _show_aspects(aspects),
        "passages": [{"document": key, "text": text} for key, text in passages],
        "free": study.count_free(found),
    }


def _show_rating(request: HttpRequest, found: ReferenceStudy) -> dict[str, Any]:
    rater = scope_of(request).member.assessor
    waiting = study.answers_to_rate(found, rater)
    answer: StudyAnswer | None = waiting.first()
    # Which of the two stands first differs by rater and answer, so that the place says nothing of the writer.
    first, second = study.shown_answers(found, answer, rater) if answer else ("", "")
    query = answer.reference.query if answer else None
    return {
        "answer": answer.pk if answer else None,
        "query": query.external_id if query else "",
        "text": query.text if query else "",
        "first": first,
        "second": second,
        "aspects": _show_aspects(study.passages_of(answer)[0] if answer else []),
        "waiting": waiting.count(),
    }


def _show_aspects(aspects: list[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"text": text, "importance": importance} for text, importance in aspects]
