"""Revoking the access tokens and webhooks of a person who lost a right (annotation.people.accounts.withdrawing)."""

from typing import Any

from django.db.models import Q
from django.dispatch import receiver

from annotation.access.audit_log.recording import record
from annotation.access.permissions import administered_collections
from annotation.models import User
from annotation.people.accounts.withdrawing import not_administered, rights_lost
from api.models import AccessToken, Webhook
from api.tokens import current_tokens, revoke_token
from api.webhooks.services import disable_webhook


@receiver(rights_lost)
def withdraw_made(sender: Any, person: User, by: User | None, **kwargs: Any) -> dict[str, int]:
    """Revoke a person's tokens and disable their webhooks where they may no longer create any; return how many."""
    # Tokens with a permission that their person no longer has.
    unusable = Q() if not person.is_active else Q(pk=None)
    if person.is_active and not person.is_owner:
        active = person.memberships.filter(is_active=True).values("collection")
        administered = administered_collections(person)
        manages = Q(scopes__contains=[AccessToken.TokenScope.MANAGE])
        unusable_here = ~Q(collection__in=active) | (manages & ~Q(collection__in=administered.values("pk")))
        unusable = Q(collection__isnull=False) & unusable_here
        # A token for all collections may manage those that the person administers: none at all makes it useless.
        unusable = unusable if administered.exists() else unusable | (Q(collection=None) & manages)
    tokens = list(current_tokens(person).filter(unusable).select_related("collection", "user"))
    for token in tokens:
        revoke_token(token, by=by)
    rows = Webhook.objects.filter(not_administered(person), made_by=person, disabled="").select_related("collection")
    webhooks = list(rows.select_for_update(of=("self",)).order_by("pk"))
    for row in webhooks:
        disable_webhook(row, Webhook.Disabled.BY_PERSON, by=by or person)
        record(by, "webhook.changed", row.collection, concerns=person, webhook=row.number, active=False)
    return {"tokens": len(tokens), "webhooks": len(webhooks)}
