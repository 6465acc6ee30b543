"""Requests that may be sent again: the header Idempotency-Key, and its kept answers."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db import IntegrityError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.utils import timezone

from api.models import IdempotentAnswer
from api.problems import refuse, refuse_body
from api.tokens import bearer_token

# The header, and the 422 for a key that was used for another request, are those of the IETF's draft
# (draft-ietf- httpapi-idempotency-key-header).
HEADER = "Idempotency-Key"
LONGEST = 255
# As long as the log of webhooks. Nobody sends a request again after weeks, and each answer is stored whole.
KEPT = timedelta(days=30)
DELETED_AT_ONCE = 10_000
# Of a transaction of one view: each waits for another that changes the same row, and begins anew when that has ended.
TRIES = 20
Operation = Callable[..., HttpResponse]


class _Repeated(Exception):
    """The Idempotency-Key was used before with the same token."""


def once(operation: Operation, *, one_view: bool = False) -> Operation:
    """Answer a request with an Idempotency-Key once: sent again with the same key, it gets the first answer.

    The key and all that the request does are one transaction, so that a second request waits for
    the first, and one that was killed leaves neither. Refusals are not kept: who mends the request
    may use the key again. `one_view`: the transaction sees the database at one moment, as an export
    must; PostgreSQL refuses it a row that was changed since, so it is tried again with a later
    view.
    """

    @wraps(operation)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        key = request.headers.get(HEADER, "")
        # This runs before the operation's own authentication, which answers where there is no valid token.
        row = bearer_token(request) if key else None
        if row is None:
            return operation(request, *args, **kwargs)
        if len(key) > LONGEST or not key.isprintable():
            return refuse(400, f"{HEADER}: at most {LONGEST} printable characters")
        try:
            asked = hash_request(request)
        except MultiPartParserError as error:
            return refuse(400, str(error))
        except SuspiciousOperation as error:
            return refuse_body(request, error)

        def answer_once() -> HttpResponse:
            # The isolation can be set only before the first query of a transaction.
            fresh = not connection.in_atomic_block
            with transaction.atomic():
                if one_view and fresh:
                    connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                try:
                    # A savepoint, for the violated constraint would end the outer transaction. The
                    # constraint is the lock as well: the second insert waits until the transaction
                    # of the first request has ended.
                    with transaction.atomic():
                        kept = IdempotentAnswer.objects.create(token=row, key=key, request=asked)
                except IntegrityError:
                    raise _Repeated from None
                response = operation(request, *args, **kwargs)
                # ninja has turned exceptions into answers, so nothing else would roll back what they interrupted.
                if response.status_code >= 400:
                    transaction.set_rollback(True)
                    return response
                # Operations with a key answer with JSON, never with a stream: the content is all there.
                kept.status, kept.body = response.status_code, response.content
                kept.content_type = response.headers["Content-Type"]
                kept.save()
            return response

        try:
            response = answer_once()
            for _try in range(TRIES if one_view else 0):
                if response.status_code != 409:
                    break
                response = answer_once()
        except _Repeated:
            # Outside the transaction, whose view may be older than the first answer. Authentication
            # raises it, once it has found that the person may still ask.
            kept = IdempotentAnswer.objects.get(token=row, key=key)
            again = HttpResponse(bytes(kept.body), status=kept.status, content_type=kept.content_type)
            # So that a client can tell a repeated answer from a first one; the name is that of Stripe's API.
            again["Idempotent-Replayed"] = "true"
            if kept.request != asked:
                again = refuse(422, f"this {HEADER} was used for another request")
            request.kept_answer = again  # type: ignore[attr-defined]
            return operation(request, *args, **kwargs)
        return response

    return answer


def hash_request(request: HttpRequest) -> str:
    """Return the SHA-256 of what a request asks for: its method, its address and its body.

    Of files their names and contents count, and not the body: another one may part them otherwise.
    They may be larger than the memory. Raises MultiPartParserError and SuspiciousOperation.
    """
    asked = sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type != "multipart/form-data":
        asked.update(request.body)
        return asked.hexdigest()
    for name, values in sorted(request.POST.lists()):
        asked.update(repr((name, values)).encode())
    for name, files in sorted(request.FILES.lists(), key=lambda row: row[0]):
        for file in files:
            asked.update(repr((name, file.name, file.size)).encode())
            for chunk in file.chunks():
                asked.update(chunk)
            # The operation reads the file again, from its beginning.
            file.seek(0)
    return asked.hexdigest()


def delete_old_answers() -> int:
    """Delete answers that are older than 30 days, some thousands at once; return how many."""
    # The oldest by their numbers, which rise with the time: no index of the times is needed.
    oldest = IdempotentAnswer.objects.order_by("pk").values("pk")[:DELETED_AT_ONCE]
    count, _rows = IdempotentAnswer.objects.filter(pk__in=oldest, created_at__lt=timezone.now() - KEPT).delete()
    return count
