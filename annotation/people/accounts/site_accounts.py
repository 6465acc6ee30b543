"""What owners of the site can do to accounts: list them, close and reopen them, and change their rights and names.

None of these actions deletes judgments. Each change is recorded in the audit log.
"""

import re
from collections.abc import Callable
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


def list_accounts(search: str, after: str) -> QuerySet[User]:
    """Return a page of accounts in the order of their names, and one more account if there is a next page.

    The page has only names that contain `search` and come after `after`; an empty text sets no condition. Each
    account has `collection_count`, the number of its active memberships, and `has_factor`, whether it has a second
    factor.
    """
    accounts = User.objects.order_by("username")
    if after:
        accounts = accounts.filter(username__gt=after)
    if search:
        accounts = accounts.filter(username__icontains=search)
    active_memberships = Count("memberships", filter=Q(memberships__is_active=True))
    second_factors = Authenticator.objects.filter(user=OuterRef("pk"), type=Authenticator.Type.TOTP)
    annotated = accounts.annotate(collection_count=active_memberships, has_factor=Exists(second_factors))
    return annotated[: PAGE_SIZE + 1]


@transaction.atomic
def close_account(account: User, *, by: User) -> Withdrawn:
    """Close an account, and revoke the invitations, password links, tokens and webhooks that its user has created.

    Nobody can sign in to the account, its sessions end, and its assigned pairs return to the queue. Returns the numbers
    of what was revoked. Raises BadInput if owners close their own account.
    """
    _check_other_account(account, by)
    _end_access(account)
    record(by, "account.stopped", concerns=account)
    return withdraw(account, by=by)


@transaction.atomic
def reopen_account(account: User, *, by: User) -> None:
    """Reopen a closed account with its former password. Raises BadInput if the account is pseudonymised."""
    # After a new invitation, an account has a password again, although it still has a pseudonym.
    has_pseudonym = re.fullmatch(rf"{_pseudonym(account)}(-[0-9]+)?", account.username)
    if has_pseudonym and not account.has_usable_password():
        raise BadInput(_("A pseudonymised account cannot be reopened. Send a new invitation"))
    account.is_active = True
    account.save(update_fields=["is_active"])
    record(by, "account.started", concerns=account)


@transaction.atomic
def end_sessions(account: User, *, by: User) -> None:
    """Sign an account out on all devices."""
    session_count = sessions.end_all_sessions(account)
    record(by, "session.ended", concerns=account, count=session_count)


@transaction.atomic
def remove_second_factor(account: User, *, by: User) -> None:
    """Remove the second factor of an account, whose user has lost their phone and their recovery codes.

    Raises BadInput if the account has no second factor, or if owners remove their own.
    """
    _check_other_account(account, by)
    if not second_factor.remove(account):
        raise BadInput(_("%(name)s has not set up two-factor authentication") % {"name": account.username})
    record(by, "second-factor.removed", concerns=account)


@transaction.atomic
def give_owner_role(account: User, *, by: User) -> None:
    """Make the user of an account an owner of the site, who sees and changes everything.

    Raises BadInput if they already are one.
    """
    _set_owner_role(account, by=by, is_owner=True)


@transaction.atomic
def remove_owner_role(account: User, *, by: User) -> Withdrawn:
    """Remove the owner role from an account, and revoke what its user has created with that role.

    These are invitations, password links, access tokens and webhooks, except those of collections that the user still
    administers. Returns their numbers. Raises BadInput if the account does not have the role, or if owners remove their
    own.
    """
    _check_other_account(account, by)
    _set_owner_role(account, by=by, is_owner=False)
    return withdraw(account, by=by)


@transaction.atomic
def pseudonymise(account: User, *, by: User) -> Withdrawn:
    """Delete the name, the email address, the password and the devices of a person from their account.

    1. Close the account, and delete its ways to sign in.
    2. Replace the name by a pseudonym in other rows, such as judgments. Delete the stored results and the notes of
       invitations that may contain the name.
    3. Rename the account, and delete its email address and password.
    4. Revoke the invitations, password links, access tokens and webhooks that the person has created.

    Returns the numbers of what was revoked. Files that were exported earlier still contain the old name. Raises
    BadInput if owners pseudonymise their own account, and for other owners, whose role must be removed first.
    """
    _check_other_account(account, by)
    if account.is_owner:
        raise BadInput(_("Remove the owner role first"))
    old_name = account.username
    new_name = _choose_pseudonym(account)
    # 1. Access.
    _end_access(account)
    second_factor.remove(account)
    SocialAccount.objects.filter(user=account).delete()
    # 2. Stored names.
    _remove_stored_name(account, old_name, new_name)
    # 3. The account.
    account.username = new_name
    account.email = ""
    account.set_unusable_password()
    account.save(update_fields=["username", "email", "password"])
    record(by, "account.pseudonymised", concerns=account)
    # 4. What the person has created.
    return withdraw(account, by=by)


class AccountAction(NamedTuple):
    """An action of owners on an account, and the message that confirms it."""

    # Called with the account, and with the acting owner as `by`. Returns the numbers of what was revoked, if anything.
    perform: Callable[..., Withdrawn | None]
    confirmation: str


# The actions by their names in the URL, which say "stop" for closing an account and "start" for reopening it.
ACCOUNT_ACTIONS = {
    "stop": AccountAction(close_account, gettext_noop("%(name)s can no longer sign in. Existing judgments are kept.")),
    "start": AccountAction(reopen_account, gettext_noop("%(name)s can sign in again.")),
    "end-sessions": AccountAction(end_sessions, gettext_noop("%(name)s has been signed out on all devices.")),
    "remove-second-factor": AccountAction(
        remove_second_factor,
        gettext_noop("Two-factor authentication has been turned off for %(name)s. They sign in with a password only."),
    ),
    "make-owner": AccountAction(give_owner_role, gettext_noop("%(name)s is now an owner of this site.")),
    "unmake-owner": AccountAction(remove_owner_role, gettext_noop("%(name)s is no longer an owner.")),
    "pseudonymise": AccountAction(
        pseudonymise, gettext_noop("%(old)s has been renamed %(new)s. Existing judgments are kept.")
    ),
}


def _check_other_account(account: User, by: User) -> None:
    """Raise BadInput if an owner acts on their own account."""
    if account.pk == by.pk:
        raise BadInput(_("You would lose your own access. Ask another owner to make this change"))


def _end_access(account: User) -> None:
    """Mark an account as closed, end its sessions, and return its assigned pairs to the queue."""
    account.is_active = False
    account.save(update_fields=["is_active"])
    sessions.end_all_sessions(account)
    for membership in Membership.objects.filter(user=account, is_active=True):
        end_lease(membership)


def _set_owner_role(account: User, *, by: User, is_owner: bool) -> None:
    """Give an account the owner role, or remove it. Raises BadInput if the account already is as requested."""
    if account.is_owner == is_owner:
        raise BadInput(_("Nothing to change"))
    account.is_owner = is_owner
    account.save(update_fields=["is_owner"])
    record(by, "account.owner", concerns=account, owner=is_owner)


def _pseudonym(account: User) -> str:
    return f"person-{account.pk}"


def _choose_pseudonym(account: User) -> str:
    """Return the pseudonym of an account, with a number appended if its name is already in use.

    The name may be in use by another account, or by an assessor without an account in the same collections.
    """
    other_accounts = User.objects.exclude(pk=account.pk)
    assessors = Assessor.objects.filter(collection__in=_collections_of(account), kind=Assessor.Kind.PERSON)
    other_assessors = assessors.exclude(membership__user=account)
    pseudonym = _pseudonym(account)
    name = pseudonym
    for number in count(2):
        if not (other_accounts.filter(username__iexact=name).exists() or other_assessors.filter(name=name).exists()):
            break
        name = f"{pseudonym}-{number}"
    return name


def _remove_stored_name(account: User, old_name: str, new_name: str) -> None:
    """Replace or delete the name of an account wherever it is stored, except in the account itself.

    Stored results are deleted, and the notes of invitations are emptied. Other rows get the new name.
    """
    collections = _collections_of(account)
    Assessor.objects.filter(membership__user=account).update(name=new_name)
    # Stored results contain names, except those of two kinds. A page that needs a deleted result computes it again.
    kinds_without_names = ["agreement", "candidate-sources"]
    StoredResult.objects.filter(collection__in=collections).exclude(kind__in=kinds_without_names).delete()
    # The note of an invitation is usually the name of the invited person.
    Invitation.objects.filter(accepted_by=account).update(note="")
    # Contribution and evidence contain the name of their writer. Their rows are append-only with this one exception.
    targets = Target.objects.filter(kind=Target.Kind.PERSON, writer=old_name, pair__collection__in=collections)
    with pgtrigger.ignore("corpus.Target:append_only"):
        targets.update(writer=new_name)
    # Other rows contain the name of the person who made them. Their models are found by the name of this field,
    # because most of them are in apps that annotation must not import.
    for model in apps.get_models():
        if any(field.name == "made_by" and isinstance(field, CharField) for field in model._meta.concrete_fields):
            model._default_manager.filter(made_by=old_name).update(made_by=new_name)


def _collections_of(account: User) -> QuerySet[Collection]:
    """Return the collections of which the user of an account is or was a member."""
    return Collection.objects.filter(pk__in=Membership.objects.filter(user=account).values("collection"))
