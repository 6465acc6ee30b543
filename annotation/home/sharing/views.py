"""The page of a collection's read-only links: the list, a new one, revoking one."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from actions.options import show_refusal
from actions.pages import form_of
from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.home.sharing.options import ShareOptions
from annotation.home.sharing.selectors import address_of, list_links
from annotation.home.sharing.services import revoke_link, share_page
from corpus.errors import BadInput


@action("admin", "GET", "POST")
def share_links(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the links and the form of a new one, for a page that `page` names; a POST creates it and shows it once."""
    initial = {name: request.GET[name] for name in ("page", "report") if name in request.GET}
    form, address = form_of(share_page, request, initial=initial), ""
    if form.is_bound and form.is_valid() and isinstance(form.options, ShareOptions):
        try:
            made = share_page(Actor.of(scope), scope.collection, form.options)
            form, address = form_of(share_page), address_of(request, made.token)
        except BadInput as error:
            show_refusal(form, error)
    # No redirect: the token is not stored, so only this response can show the link.
    context = {"scope": scope, "form": form, "made": address, "now": timezone.now()}
    context["links"] = list_links(scope.collection)
    return render(request, "sharing/links.html", context, status=422 if form.is_bound else 200)


@action("admin", "POST")
def revoke_share_link(request: HttpRequest, scope: Scope, link: int) -> HttpResponse:
    """Revoke a link."""
    revoke_link(Actor.of(scope), get_object_or_404(list_links(scope.collection), pk=link))
    messages.success(request, _("Link revoked."))
    return redirect("share_links", scope.collection.name)
