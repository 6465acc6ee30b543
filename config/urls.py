"""URL patterns of the site. Each app has its own; Django's admin is not included."""

from django.urls import include, path

from config.finding import find, find_on_site
from config.hub import push_to_hub
from config.lab import lab

handler500 = "config.unavailability.server_error"

urlpatterns = [
    path("c/<slug:name>/lab/", lab, name="lab"),
    path("find/", find_on_site, name="find_on_site"),
    path("c/<slug:name>/find/", find, name="find"),
    path("c/<slug:name>/exports/<int:number>/push/", push_to_hub, {"kind": "dataset"}, name="push_export"),
    path("c/<slug:name>/training/models/<int:number>/push/", push_to_hub, {"kind": "model"}, name="push_model"),
    path("", include("annotation.urls")),
    path("", include("training.urls")),
    path("", include("benchmark.urls")),
    path("", include("api.urls")),
]
