"""Views of the table of pairs that people save under a name."""

from django.http import QueryDict
from django.utils.translation import gettext as _

from annotation.data.pair_filters import PairFilters
from annotation.models import User
from annotation.models.pair_table import SavedView
from corpus.errors import BadInput
from corpus.models import Collection

LONGEST = 60
MOST = 30


def save_view(*, user: User, collection: Collection, name: str, query: str) -> SavedView:
    """Save filters and order under a name, or replace those of that name. Raises BadInput."""
    name = _check_name(name)
    views = SavedView.objects.filter(user=user, collection=collection)
    if views.exclude(name=name).count() >= MOST:
        raise BadInput(_("You have %(most)s saved views. Delete one first.") % {"most": MOST})
    # Through the filters and back, so that no foreign parameter gets into a link.
    values = {"query": PairFilters.read(QueryDict(query)).query()}
    view, _made = SavedView.objects.update_or_create(user=user, collection=collection, name=name, defaults=values)
    return view


def rename_view(view: SavedView, name: str) -> None:
    """Rename a saved view. Raises BadInput where the person has another view of that name."""
    name = _check_name(name)
    others = SavedView.objects.filter(user=view.user_id, collection=view.collection_id).exclude(pk=view.pk)
    if others.filter(name=name).exists():
        raise BadInput(_("You already have a view named “%(name)s”. Choose another name.") % {"name": name})
    SavedView.objects.filter(pk=view.pk).update(name=name)


def _check_name(name: str) -> str:
    name = " ".join(name.replace("\0", "").split())
    if not 1 <= len(name) <= LONGEST:
        raise BadInput(_("Enter a name for the view with 1 to %(most)s characters.") % {"most": LONGEST})
    return name
