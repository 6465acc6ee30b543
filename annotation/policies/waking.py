"""A word to the workers that people settled a pair of LARA's batch (annotation.policies.lara_live goes on)."""

from django.db import transaction

from corpus.models import Item
from jobs import notifications, workers

GO_ON = "annotation.go_on_with_lara"
UNCERTAIN = Item.Reason.UNCERTAIN.value


def go_on(campaign: int | None) -> None:
    """Send it once the judgment is committed, where a worker lives; a lost word costs nothing (`lara NAME` goes on)."""

    def send() -> None:
        if workers.has_workers():
            notifications.notify(GO_ON, campaign)

    if campaign is not None:
        transaction.on_commit(send)
