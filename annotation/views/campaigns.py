"""In the making."""

from django.http import HttpRequest, HttpResponse

from annotation.permissions import Scope, action


@action("admin")
def campaigns(request: HttpRequest, scope: Scope, **kwargs: object) -> HttpResponse:
    """In the making."""
    return HttpResponse("in the making")


start = control = home = pairs = pair = campaigns
