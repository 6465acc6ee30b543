"""Annotators: signed in to the pages, or at the queue itself: claim, judge, skip, flag."""

from django.test import Client

from annotation.models import Assignment, Membership
from annotation.work.judging import submitting
from annotation.work.queue import assignment
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer


def signed_in(member: Membership, **headers: str) -> Client:
    client = Client(headers=headers)
    client.force_login(member.user)
    return client


def desk(member: Membership) -> AnnotatorContext:
    return AnnotatorContext.of(Membership.objects.select_related("collection").get(pk=member.pk))


def claim(member: Membership) -> Assignment | None:
    return _read(assignment.in_transaction(lambda db: submitting.claim(db, desk(member))))


def submit(member: Membership, lease: Assignment, grade: int, **values: object) -> Assignment | None:
    """Judge the pair of a lease and return the next one."""
    answer = SubmittedAnswer(lease.item_id, lease.token, grade, **values)
    return _read(assignment.in_transaction(lambda db: submitting.submit(db, desk(member), answer)))


def skip(member: Membership, lease: Assignment, reason: str = "other") -> None:
    assignment.in_transaction(lambda db: submitting.skip(db, desk(member), lease.item_id, lease.token, reason))


def flag(member: Membership, lease: Assignment, note: str) -> None:
    assignment.in_transaction(lambda db: submitting.flag(db, desk(member), lease.item_id, lease.token, note))


def _read(lease: int | None) -> Assignment | None:
    return lease and Assignment.objects.select_related("item").get(pk=lease)
