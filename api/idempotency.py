"""Requests that may be repeated: the header Idempotency-Key, and stored answers."""

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
# (draft-ietf-httpapi-idempotency-key-header).
HEADER = "Idempotency-Key"
LONGEST = 255
# As long as the log of webhooks. Nobody repeats a request after weeks, and answers are stored in full.
RETENTION = timedelta(days=30)
DELETED_AT_ONCE = 10_000
# Attempts of a REPEATABLE READ transaction: each fails if another transaction changes the same row.
TRIES = 20
Operation = Callable[..., HttpResponse]


class _Repeated(Exception):
    """The Idempotency-Key was used before with the same token."""


def once(operation: Operation, *, one_view: bool = False) -> Operation:
    """Answer a request with an Idempotency-Key once: a repetition with the same key gets the stored answer.

    The key and the work of the request are one transaction, so that a second request waits for the
    first, and a killed one leaves neither. Refusals are not stored: a corrected request may use the key
    again. `one_view`: the transaction sees one snapshot of the database, as an export must. PostgreSQL
    refuses it rows that were changed since, so it is retried with a newer snapshot.
    """

    @wraps(operation)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        key = request.headers.get(HEADER, "")
        # This runs before the operation's authentication, which refuses requests without a valid token.
        row = bearer_token(request) if key else None
        if row is None:
            return operation(request, *args, **kwargs)
        if len(key) > LONGEST or not key.isprintable():
            return refuse(400, f"{HEADER}: at most {LONGEST} printable characters")
        try:
            request_hash = hash_request(request)
        except MultiPartParserError as error:
            return refuse(400, str(error))
        except SuspiciousOperation as error:
            return refuse_body(request, error)

        def answer_once() -> HttpResponse:
            # The isolation level can be set only before the first query of a transaction.
            is_outermost = not connection.in_atomic_block
            with transaction.atomic():
                if one_view and is_outermost:
                    connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                try:
                    # A savepoint, because a violated constraint would abort the outer transaction. The
                    # constraint is also the lock: the second insert waits until the first request's
                    # transaction has ended.
                    with transaction.atomic():
                        stored = IdempotentAnswer.objects.create(token=row, key=key, request=request_hash)
                except IntegrityError:
                    raise _Repeated from None
                response = operation(request, *args, **kwargs)
                # ninja turns exceptions into responses, so nothing else would roll back.
                if response.status_code >= 400:
                    transaction.set_rollback(True)
                    return response
                # Operations with a key answer with JSON, never with a stream.
                stored.status, stored.body = response.status_code, response.content
                stored.content_type = response.headers["Content-Type"]
                stored.save()
            return response

        try:
            response = answer_once()
            for _try in range(TRIES if one_view else 0):
                if response.status_code != 409:
                    break
                response = answer_once()
        except _Repeated:
            # Outside the transaction, whose snapshot may be older than the stored answer. Authentication
            # returns the answer once it has checked that the person still has the permission.
            answered = IdempotentAnswer.objects.get(token=row, key=key)
            replay = HttpResponse(bytes(answered.body), status=answered.status, content_type=answered.content_type)
            # Lets a client tell a repeated answer from a first one; the name is that of Stripe's API.
            replay["Idempotent-Replayed"] = "true"
            if answered.request != request_hash:
                replay = refuse(422, f"this {HEADER} was used for another request")
            request.stored_answer = replay  # type: ignore[attr-defined]
            return operation(request, *args, **kwargs)
        return response

    return answer


def hash_request(request: HttpRequest) -> str:
    """Return the SHA-256 of a request: its method, address and body.

    Of a multipart body the fields and files are hashed, since its boundary may differ; files are read in
    chunks, since they may be larger than the memory. Raises MultiPartParserError and SuspiciousOperation.
    """
    digest = sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type != "multipart/form-data":
        digest.update(request.body)
        return digest.hexdigest()
    for name, values in sorted(request.POST.lists()):
        digest.update(repr((name, values)).encode())
    for name, files in sorted(request.FILES.lists(), key=lambda row: row[0]):
        for file in files:
            digest.update(repr((name, file.name, file.size)).encode())
            for chunk in file.chunks():
                digest.update(chunk)
            # The operation will read the file from its beginning.
            file.seek(0)
    return digest.hexdigest()


def delete_old_answers() -> int:
    """Delete answers older than 30 days, at most DELETED_AT_ONCE; return how many."""
    # The oldest have the lowest ids, so that no index of times is needed.
    oldest = IdempotentAnswer.objects.order_by("pk").values("pk")[:DELETED_AT_ONCE]
    count, _rows = IdempotentAnswer.objects.filter(pk__in=oldest, created_at__lt=timezone.now() - RETENTION).delete()
    return count
