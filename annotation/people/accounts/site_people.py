"""Accounts of the site, which owners list and change. An account's judgments stay in all cases."""

import re
from collections.abc import Callable
from functools import partial
from itertools import chain, count

import pgtrigger
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.apps import apps
from django.db import transaction
from django.db.models import CharField, Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.access.audit_log.recording import record
from annotation.models import Invitation, Membership, StoredResult, User
from annotation.people.accounts import second_factor, sessions
from annotation.people.accounts.withdrawing import Withdrawn, withdraw
from annotation.work.queue.undo import end_lease
from corpus.errors import BadInput
from corpus.models import Assessor, Target

PAGE = 50


def list_users(search: str, after: str) -> QuerySet[User]:
    """Return a page of accounts by name after `after`, and one more where there is a next page."""
    totp = Authenticator.objects.filter(user=OuterRef("pk"), type=Authenticator.Type.TOTP)
    users = User.objects.filter(username__gt=after) if after else User.objects.all()
    if search:
        users = users.filter(username__icontains=search)
    joined = Count("memberships", filter=Q(memberships__is_active=True))
    return users.annotate(joined=joined, has_factor=Exists(totp)).order_by("username")[: PAGE + 1]


@transaction.atomic
def close_account(person: User, *, by: User) -> Withdrawn:
    """Close an account: it cannot sign in, and its open pairs return to the queue."""
    _refuse_oneself(person, by)
    _set_active(person, False)
    record(by, "account.stopped", concerns=person)
    return withdraw(person, by=by)


@transaction.atomic
def reopen_account(person: User, *, by: User) -> None:
    """Reopen a closed account with its former password. Raises BadInput for a pseudonymised one."""
    if not person.has_usable_password() and re.fullmatch(rf"person-{person.pk}(-[0-9]+)?", person.username):
        raise BadInput(_("A pseudonymised account cannot be reopened. Send a new invitation"))
    _set_active(person, True)
    record(by, "account.started", concerns=person)


@transaction.atomic
def end_sessions(person: User, *, by: User) -> None:
    """End all sessions of an account."""
    record(by, "session.ended", concerns=person, count=sessions.end_others(person, None))


@transaction.atomic
def remove_factor(person: User, *, by: User) -> None:
    """Remove the second factor of a person who lost phone and codes. Raises BadInput where there is none."""
    _refuse_oneself(person, by)
    if not second_factor.remove(person):
        raise BadInput(_("%(name)s has not set up two-factor authentication") % {"name": person.username})
    record(by, "second-factor.removed", concerns=person)


@transaction.atomic
def set_owner(person: User, *, by: User, owner: bool) -> Withdrawn:
    """Give an account the owner role, with which it sees and changes everything, or remove it. Raises BadInput."""
    if not owner:
        _refuse_oneself(person, by)
    if person.is_owner == owner:
        raise BadInput(_("Nothing to change"))
    person.is_owner = owner
    person.save(update_fields=["is_owner"])
    record(by, "account.owner", concerns=person, owner=owner)
    return Withdrawn() if owner else withdraw(person, by=by)


@transaction.atomic
def pseudonymise(person: User, *, by: User) -> Withdrawn:
    """Delete a person's name, email address, password and devices; their judgments stay under a new name.

    Files that were exported before contain the old name.
    """
    _refuse_oneself(person, by)
    if person.is_owner:
        raise BadInput(_("Remove the owner role first"))
    # With a number at the end where another account or assessor has the name already.
    collections = Membership.objects.filter(user=person).values("collection")
    others = Assessor.objects.filter(collection__in=collections, kind=Assessor.Kind.PERSON)
    others = others.exclude(membership__user=person)
    old_name, pseudonym = person.username, f"person-{person.pk}"
    new_name = next(
        name
        for name in chain([pseudonym], (f"{pseudonym}-{number}" for number in count(2)))
        if not User.objects.filter(username__iexact=name).exclude(pk=person.pk).exists()
        and not others.filter(name=name).exists()
    )
    _set_active(person, False)
    sessions.end_others(person, None)
    second_factor.remove(person)
    SocialAccount.objects.filter(user=person).delete()
    Assessor.objects.filter(membership__user=person).update(name=new_name)
    # Stored figures, except those of agreement, contain names; they are computed again when a page needs them.
    StoredResult.objects.filter(collection__in=collections).exclude(kind="agreement").delete()
    Invitation.objects.filter(accepted_by=person).update(note="")
    # Some tables name people by text. Texts are append-only with this exception.
    with pgtrigger.ignore("corpus.Target:append_only"):
        texts = Target.objects.filter(kind=Target.Kind.PERSON, writer=old_name, pair__collection__in=collections)
        texts.update(writer=new_name)
    # Found by their field, because most of these models are in apps that annotation must not import.
    for model in apps.get_models():
        if any(field.name == "made_by" and isinstance(field, CharField) for field in model._meta.concrete_fields):
            model._default_manager.filter(made_by=old_name).update(made_by=new_name)
    person.username, person.email = new_name, ""
    person.set_unusable_password()
    person.save(update_fields=["username", "email", "password"])
    record(by, "account.pseudonymised", concerns=person)
    return withdraw(person, by=by)


# Actions of owners on an account by their name in the address, each with the message that confirms it.
ACTS: dict[str, tuple[Callable[..., Withdrawn | None], str]] = {
    "stop": (close_account, gettext_noop("%(name)s can no longer sign in. Existing judgments are kept.")),
    "start": (reopen_account, gettext_noop("%(name)s can sign in again.")),
    "end-sessions": (end_sessions, gettext_noop("%(name)s has been signed out on all devices.")),
    "remove-second-factor": (
        remove_factor,
        gettext_noop("Two-factor authentication has been turned off for %(name)s. They sign in with a password only."),
    ),
    "make-owner": (partial(set_owner, owner=True), gettext_noop("%(name)s is now an owner of this site.")),
    "unmake-owner": (partial(set_owner, owner=False), gettext_noop("%(name)s is no longer an owner.")),
    "pseudonymise": (pseudonymise, gettext_noop("%(old)s has been renamed %(new)s. Existing judgments are kept.")),
}


def _refuse_oneself(person: User, by: User) -> None:
    if person.pk == by.pk:
        raise BadInput(_("You would lose your own access. Ask another owner to make this change"))


def _set_active(person: User, active: bool) -> None:
    person.is_active = active
    person.save(update_fields=["is_active"])
    if not active:
        sessions.end_others(person, None)
        for membership in Membership.objects.filter(user=person, is_active=True):
            end_lease(membership)
