"""The owners' pages of search endpoints: list, add, change, test and delete."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from actions.options import ActionForm
from actions.pages import answer_action
from actions.services import Actor
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints import selectors, services
from benchmark.search_endpoints.forms import endpoint_form, field_groups, initial_options
from benchmark.search_endpoints.kinds import KINDS, EndpointKind
from benchmark.search_endpoints.options import EndpointOptions
from corpus.access import AccessSiteScope, action


@action("own-site", "GET")
def search_endpoints(request: HttpRequest, scope: AccessSiteScope) -> HttpResponse:
    """List the search endpoints, and the kinds that can be added."""
    rows = [{"endpoint": row, "kind": KINDS[row.kind].title} for row in selectors.endpoints()]
    return render(
        request, "search_endpoints/endpoints.html", {"scope": scope, "rows": rows, "kinds": list(KINDS.values())}
    )


@action("own-site", "GET", "POST")
def add_search_endpoint(request: HttpRequest, scope: AccessSiteScope, engine: str) -> HttpResponse:
    """Show the form of a new endpoint of a kind; a POST adds it, and leads to its test."""
    if engine not in KINDS:
        raise Http404(_("Unknown kind of search engine."))
    kind = KINDS[engine]
    form = endpoint_form(services.add_endpoint, kind, request)

    def show(form: ActionForm) -> HttpResponse:
        return _render_form(request, scope, "search_endpoints/add.html", form, kind)

    def done(endpoint: SearchEndpoint) -> str:
        messages.success(request, _("Added: %(name)s. Test it with one query.") % {"name": endpoint.name})
        return reverse("search_endpoint", args=[endpoint.pk])

    return answer_action(request, scope, services.add_endpoint, form, show, done)


@action("own-site", "GET", "POST")
def search_endpoint(request: HttpRequest, scope: AccessSiteScope, endpoint: int) -> HttpResponse:
    """Show an endpoint with its test and its settings; a POST changes them."""
    row = selectors.get_endpoint(endpoint)
    form = _change_form(row, request)

    def show(form: ActionForm) -> HttpResponse:
        return _render_endpoint(request, scope, row, form=form)

    def change(actor: Actor, site: None, options: EndpointOptions) -> SearchEndpoint:
        return services.change_endpoint(actor, row, options)

    def done(endpoint: SearchEndpoint) -> str:
        messages.success(request, _("Saved: %(name)s.") % {"name": endpoint.name})
        return reverse("search_endpoint", args=[endpoint.pk])

    return answer_action(request, scope, change, form, show, done)


@action("own-site", "POST")
def test_search_endpoint(request: HttpRequest, scope: AccessSiteScope, endpoint: int) -> HttpResponse:
    """Send one query to an endpoint, and show request, answer and hits."""
    row = selectors.get_endpoint(endpoint)
    test_form = ActionForm(services.EndpointTestOptions, request.POST)
    test = None
    if test_form.is_valid():
        options = test_form.options
        assert isinstance(options, services.EndpointTestOptions)
        test = services.try_endpoint(Actor.of(scope), row, options)
    return _render_endpoint(request, scope, row, test_form=test_form, test=test)


@action("own-site", "GET", "POST")
def delete_search_endpoint(request: HttpRequest, scope: AccessSiteScope, endpoint: int) -> HttpResponse:
    """Ask whether to delete an endpoint; a POST deletes it."""
    row = selectors.get_endpoint(endpoint)
    if request.method != "POST":
        return render(request, "search_endpoints/delete.html", {"scope": scope, "endpoint": row})
    services.delete_endpoint(Actor.of(scope), row)
    messages.success(request, _("Deleted: %(name)s. Its runs are kept.") % {"name": row.name})
    return redirect("search_endpoints")


def _change_form(row: SearchEndpoint, request: HttpRequest | None = None) -> ActionForm:
    kind = KINDS[row.kind]
    initial = initial_options(row, kind)
    return endpoint_form(services.change_endpoint, kind, request, initial=initial, fixed={"name": row.name})


def _render_form(
    request: HttpRequest,
    scope: AccessSiteScope,
    template: str,
    form: ActionForm,
    kind: EndpointKind,
    **context: object,
) -> HttpResponse:
    context |= {"scope": scope, "form": form, "groups": field_groups(form, kind), "kind": kind}
    return render(request, template, context, status=422 if form.is_bound and form.errors else 200)


def _render_endpoint(
    request: HttpRequest,
    scope: AccessSiteScope,
    row: SearchEndpoint,
    *,
    form: ActionForm | None = None,
    test_form: ActionForm | None = None,
    test: services.EndpointTest | None = None,
) -> HttpResponse:
    response = _render_form(
        request,
        scope,
        "search_endpoints/endpoint.html",
        form or _change_form(row),
        KINDS[row.kind],
        endpoint=row,
        test_form=test_form or ActionForm(services.EndpointTestOptions),
        test=test,
    )
    if test_form is not None and (test_form.errors or (test is not None and test.failure)):
        response.status_code = 422
    return response
