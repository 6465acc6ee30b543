"""Sign-up is closed: an account comes from an invitation or from `create_users`."""

import secrets

from allauth.account.adapter import DefaultAccountAdapter
from django.db import connection, transaction
from django.http import HttpRequest
from django.urls import reverse

from annotation.members import add_member
from annotation.models import Role, User
from corpus.models import Collection

NAMES_LOCK = 7_304_118
"""Advisory lock: two commands that make accounts at once take their names one after the other."""


class InvitationOnlyAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Refuses open sign-up; after a changed password one sees the account page again."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody signs up without an invitation."""
        return False

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        """The account page says that it worked."""
        return reverse("account")


def new_password() -> str:
    """A random password: 16 characters, 96 bits."""
    return secrets.token_urlsafe(12)


@transaction.atomic
def create_accounts(*, role: str, count: int, collection: Collection | None) -> list[dict[str, str]]:
    """`count` new accounts [{username, password}]; `role` is owner, or a role in `collection`."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [NAMES_LOCK])
    accounts = []
    for username in _free_names(role, count):
        password = new_password()
        user = User.objects.create_user(username=username, password=password, is_owner=role == "owner")
        if collection is not None:
            add_member(user=user, collection=collection, role=Role[role.upper()])
        accounts.append({"username": username, "password": password})
    return accounts


def reset_password(user: User) -> str:
    """A new random password for somebody who forgot theirs; it ends all their sessions and is told only here."""
    password = new_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def _free_names(role: str, count: int) -> list[str]:
    """role-1, role-2 ...: the first `count` that no account has, in any case."""
    taken = {
        name.lower()
        for name in User.objects.filter(username__istartswith=f"{role}-").values_list("username", flat=True)
    }
    numbers = (number for number in range(1, len(taken) + count + 1) if f"{role}-{number}" not in taken)
    return [f"{role}-{number}" for number, _ in zip(numbers, range(count), strict=False)]
