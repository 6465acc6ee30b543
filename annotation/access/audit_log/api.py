"""API of the audit log of a collection."""

from datetime import date, datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Field, Router, Schema

from annotation.access.audit_log import selectors
from annotation.access.audit_log.recording import ACTS, KINDS
from api.authentication import may, scope_of
from api.paging import Cursor, Limit, Page, page_of
from api.problems import CleanText
from corpus.errors import BadInput

router = Router(tags=["audit log"])
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2200, 1, 1))]
Name = Annotated[CleanText, Field(max_length=150)]


class AuditEntryOut(Schema):
    """An act: who did it, to whom, and what it was about. Texts of documents are never in it."""

    number: int
    at: datetime
    who: str | None
    act: str
    whom: str | None
    details: dict[str, Any]


@router.get("/collections/{slug:name}/audit-log", auth=may("admin"), response=Page[AuditEntryOut])
def list_audit_log(
    request: HttpRequest,
    name: str,
    act: str = "",
    actor: Name = "",
    person: Name = "",
    since: Day | None = None,
    until: Day | None = None,
    after: Cursor = 0,
    limit: Limit = 100,
) -> Any:
    """List what was done in the collection, the oldest first; `act`: one act, or a kind of acts."""
    if act and act not in ACTS and act not in KINDS:
        raise BadInput(f"act: choose one of {', '.join([*KINDS, *sorted(ACTS)])}")
    filters = selectors.AuditLogFilters(act, actor, person, since, until)
    rows = selectors.filter_records(scope_of(request).collection, filters)
    return page_of(rows, after, limit, lambda row: {"number": row.pk, **selectors.record_of(row)})
