"""What owners can do to accounts: close, reopen, sign out, promote, pseudonymise. None of it deletes judgments."""

import re
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import NamedTuple

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
from corpus.models import Assessor, Collection, Target

PAGE_SIZE = 50  # Number of accounts on a page of the list.


def list_users(search: str, after: str) -> QuerySet[User]:
    """Return a page of accounts in the order of their names, and one more account if there is a next page.

    The page has only names that contain `search` and come after `after`; an empty text sets no condition. Each
    account has `collection_count`, the number of its active memberships, and `has_factor`.
    """
    users = User.objects.order_by("username")
    if after:
        users = users.filter(username__gt=after)
    if search:
        users = users.filter(username__icontains=search)
    active_memberships = Count("memberships", filter=Q(memberships__is_active=True))
    totp = Authenticator.objects.filter(user=OuterRef("pk"), type=Authenticator.Type.TOTP)
    return users.annotate(collection_count=active_memberships, has_factor=Exists(totp))[: PAGE_SIZE + 1]


@transaction.atomic
def close_account(person: User, *, by: User) -> Withdrawn:
    """Close an account, so that it cannot sign in, and return what was withdrawn from it.

    Its sessions end, and its open pairs return to the queue. Raises BadInput if owners close their own account.
    """
    _refuse_oneself(person, by)
    _deactivate(person)
    record(by, "account.stopped", concerns=person)
    return withdraw(person, by=by)


@transaction.atomic
def reopen_account(person: User, *, by: User) -> None:
    """Reopen a closed account with its former password. Raises BadInput if the account is pseudonymised."""
    is_pseudonym = re.fullmatch(rf"{_pseudonym(person)}(-[0-9]+)?", person.username)
    if is_pseudonym and not person.has_usable_password():
        raise BadInput(_("A pseudonymised account cannot be reopened. Send a new invitation"))
    person.is_active = True
    person.save(update_fields=["is_active"])
    record(by, "account.started", concerns=person)


@transaction.atomic
def end_sessions(person: User, *, by: User) -> None:
    """End all sessions of an account."""
    session_count = sessions.end_all_sessions(person)
    record(by, "session.ended", concerns=person, count=session_count)


@transaction.atomic
def remove_factor(person: User, *, by: User) -> None:
    """Remove the second factor of a person who lost their phone and their recovery codes.

    Raises BadInput if the account has no second factor, or if owners remove their own.
    """
    _refuse_oneself(person, by)
    if not second_factor.remove(person):
        raise BadInput(_("%(name)s has not set up two-factor authentication") % {"name": person.username})
    record(by, "second-factor.removed", concerns=person)


@transaction.atomic
def set_owner(person: User, *, by: User, owner: bool) -> Withdrawn:
    """Give an account the owner role, with which it sees and changes everything, or remove the role.

    Return what was withdrawn from a former owner. Raises BadInput if the account already is as requested, or if
    owners remove their own role.
    """
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
    """Delete a person's name, email address, password and devices, and return what was withdrawn from the account.

    1. Close the account and remove its ways to sign in.
    2. Replace the name wherever it is stored, so that the judgments stay under a pseudonym.
    3. Rename the account.

    Files that were exported before still contain the old name. Raises BadInput for owners, whose role must be removed
    first.
    """
    _refuse_oneself(person, by)
    if person.is_owner:
        raise BadInput(_("Remove the owner role first"))
    old_name = person.username
    new_name = _free_pseudonym(person)
    _deactivate(person)
    second_factor.remove(person)
    SocialAccount.objects.filter(user=person).delete()
    _replace_name(person, old_name, new_name)
    person.username = new_name
    person.email = ""
    person.set_unusable_password()
    person.save(update_fields=["username", "email", "password"])
    record(by, "account.pseudonymised", concerns=person)
    return withdraw(person, by=by)


def _pseudonym(person: User) -> str:
    return f"person-{person.pk}"


def _free_pseudonym(person: User) -> str:
    """Return the person's pseudonym, with the first free number appended if somebody else already has this name.

    Somebody else is another account, or another assessor of the person's collections.
    """
    other_users = User.objects.exclude(pk=person.pk)
    assessors = Assessor.objects.filter(collection__in=_collections_of(person), kind=Assessor.Kind.PERSON)
    other_assessors = assessors.exclude(membership__user=person)
    pseudonym = _pseudonym(person)
    name = pseudonym
    for number in count(2):
        if not (other_users.filter(username__iexact=name).exists() or other_assessors.filter(name=name).exists()):
            break
        name = f"{pseudonym}-{number}"
    return name


def _replace_name(person: User, old_name: str, new_name: str) -> None:
    """Replace a person's name in all rows that contain it, except the account itself."""
    collections = _collections_of(person)
    Assessor.objects.filter(membership__user=person).update(name=new_name)
    # Stored figures contain names, except these; they are computed again when a page needs them.
    nameless = ["agreement", "candidate-sources"]
    StoredResult.objects.filter(collection__in=collections).exclude(kind__in=nameless).delete()
    # The note of an invitation is usually the name of the invited person.
    Invitation.objects.filter(accepted_by=person).update(note="")
    # Texts name their writer, and are append-only with this one exception.
    texts = Target.objects.filter(kind=Target.Kind.PERSON, writer=old_name, pair__collection__in=collections)
    with pgtrigger.ignore("corpus.Target:append_only"):
        texts.update(writer=new_name)
    # Other rows name their maker. Their models are found by the field, because most of them are in apps that
    # annotation must not import.
    for model in apps.get_models():
        if any(field.name == "made_by" and isinstance(field, CharField) for field in model._meta.concrete_fields):
            model._default_manager.filter(made_by=old_name).update(made_by=new_name)


def _collections_of(person: User) -> QuerySet[Collection]:
    """Return the collections of which the person is or was a member."""
    return Collection.objects.filter(pk__in=Membership.objects.filter(user=person).values("collection"))


class AccountAction(NamedTuple):
    """An action of owners on an account; `confirmation` is the message after it."""

    perform: Callable[..., Withdrawn | None]
    confirmation: str


# By the name of the action in the URL.
ACCOUNT_ACTIONS = {
    "stop": AccountAction(close_account, gettext_noop("%(name)s can no longer sign in. Existing judgments are kept.")),
    "start": AccountAction(reopen_account, gettext_noop("%(name)s can sign in again.")),
    "end-sessions": AccountAction(end_sessions, gettext_noop("%(name)s has been signed out on all devices.")),
    "remove-second-factor": AccountAction(
        remove_factor,
        gettext_noop("Two-factor authentication has been turned off for %(name)s. They sign in with a password only."),
    ),
    "make-owner": AccountAction(partial(set_owner, owner=True), gettext_noop("%(name)s is now an owner of this site.")),
    "unmake-owner": AccountAction(partial(set_owner, owner=False), gettext_noop("%(name)s is no longer an owner.")),
    "pseudonymise": AccountAction(
        pseudonymise, gettext_noop("%(old)s has been renamed %(new)s. Existing judgments are kept.")
    ),
}


def _refuse_oneself(person: User, by: User) -> None:
    """Raise BadInput if owners would change their own account."""
    if person.pk == by.pk:
        raise BadInput(_("You would lose your own access. Ask another owner to make this change"))


def _deactivate(person: User) -> None:
    """Deactivate an account, end its sessions, and return its open pairs to the queue."""
    person.is_active = False
    person.save(update_fields=["is_active"])
    sessions.end_all_sessions(person)
    for membership in Membership.objects.filter(user=person, is_active=True):
        end_lease(membership)
