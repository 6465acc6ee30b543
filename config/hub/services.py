"""Actions of pushes to a hub: ask for one, do it in a worker, store and delete the token."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from django.db import transaction
from django.utils.translation import gettext as _

from actions.services import Actor, action
from annotation.models import User
from annotation.models.hub import HubPush
from config.hub.options import PushOptions, TokenOptions
from config.hub.pushing import find_source, has_token, hub_address, push_folder, token_name
from corpus.errors import BadInput, QuorumError
from corpus.models import Collection
from jobs.leases import Lease, perform
from jobs.notifications import notify
from judges.models.keys import StoredKey
from judges.panels.configuration import store_key
from judges.stored_keys import can_store

TASK = "config.tasks.push_to_hub"


class PushSource(NamedTuple):
    """An export ("dataset") or a published "model" of a collection, by its number."""

    collection: Collection
    kind: str
    number: int


def _note_push(options: PushOptions, push: HubPush) -> dict[str, Any]:
    return {**options.noted(), "what": f"{push.kind} {push.number}"}


@action("export.push-asked", noted=_note_push)
def ask_push(actor: Actor, source: PushSource, options: PushOptions) -> HubPush:
    """Have a worker push the files. Raises BadInput without a token, or while they are being pushed."""
    collection = source.collection
    Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    find_source(*source)
    if not has_token(collection):
        raise BadInput(_("There is no token of the hub: store one below, or set HF_TOKEN on the server"))
    pushes = HubPush.objects.filter(collection=collection, kind=source.kind, number=source.number)
    if pushes.filter(state__in=[HubPush.WAITING, HubPush.RUNNING]).exists():
        raise BadInput(_("These files are being pushed already: wait until that is finished"))
    push = pushes.create(
        collection=collection, kind=source.kind, number=source.number, made_by=actor.name, **options.model_dump()
    )
    transaction.on_commit(partial(notify, TASK))
    return push


def perform_push(push: HubPush, should_stop: Callable[[], bool]) -> None:
    """Do a claimed push; repeated after a worker died, it sends no file again that is there already."""
    pushed: dict[str, Any] = {}

    def work(lease: Lease) -> None:
        by = User.objects.filter(username=push.made_by).first()
        done = push_folder(
            push.collection, push.kind, push.number, push.repository, public=push.public, by=by, progress=lease.progress
        )
        pushed["address"] = done["address"]

    perform(push, work, should_stop=should_stop, expected=QuorumError, last=lambda: pushed)


@action("export.hub-token", noted=lambda options, done: {"stored": True})
def store_token(actor: Actor, collection: Collection, options: TokenOptions) -> None:
    """Store the token of the hub for the pushes of a collection, encrypted. Raises BadInput where none are."""
    if not can_store():
        raise BadInput(_("This site stores no keys"))
    token = options.token.get_secret_value().strip()
    store_key(token, token_name(collection), hub_address(), by=actor.name, collection=collection)


@action("export.hub-token", noted=lambda options, done: {"stored": False})
def delete_token(actor: Actor, collection: Collection) -> None:
    """Delete the stored token of a collection."""
    StoredKey.objects.filter(name=token_name(collection)).delete()
