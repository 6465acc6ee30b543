"""Bulk acts as pages and the API show them: what one would change or changed, and the file of an export."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse
from django.utils.translation import gettext as _

from annotation.data.bulk.exporting import CONTENT_TYPES, write_lines
from annotation.data.bulk.kinds import KINDS
from annotation.models import User
from annotation.models.pair_table import BulkAct
from corpus.models import Collection
from corpus.numbered import numbered_or_404


def acts_of(collection: Collection) -> QuerySet[BulkAct]:
    """Return the acts of a collection."""
    return BulkAct.objects.filter(collection=collection).select_related("collection", "made_by")


def find_act(collection: Collection, number: int, user: User) -> BulkAct:
    """Return an act; only its author sees a plan. Raises Http404."""
    act: BulkAct = numbered_or_404(acts_of(collection), collection, number, _("Act on pairs not found."))
    # A plan is a selection, which another admin could confirm without having seen it.
    if act.state == BulkAct.State.PLANNED and act.made_by_id != user.pk:
        raise Http404(_("Act on pairs not found."))
    return act


def describe_act(act: BulkAct) -> dict[str, Any]:
    """Return how many pairs an act changes or changed, its choices while planned, and whether it can be undone."""
    kind, is_planned = KINDS[act.kind], act.state == BulkAct.State.PLANNED
    return {
        "count": kind.count(act.collection, act.pairs) if is_planned else act.affected,
        "options": kind.options_of(act) if is_planned else {},
        "can_undo": kind.can_undo(act),
    }


def stream_file(act: BulkAct) -> StreamingHttpResponse:
    """Return the file of an export that was carried out."""
    name = f"{act.collection.name}-pairs-{act.number}.{act.option}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    lines = write_lines(act.collection, act.pairs, act.option)
    return StreamingHttpResponse(lines, content_type=CONTENT_TYPES[act.option], headers=headers)
