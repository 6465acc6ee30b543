"""URL patterns of the site. Each app has its own; Django's admin is not included."""

from django.urls import include, path

from config.backups import views as backups
from config.finding import find, find_on_site
from config.hub.views import hub_token, push_to_hub
from config.lab import lab
from config.sharing import shared_page

handler500 = "config.unavailability.server_error"

urlpatterns = [
    path("c/<slug:name>/lab/", lab, name="lab"),
    path("shared/<str:token>/", shared_page, name="shared_page"),
    path("find/", find_on_site, name="find_on_site"),
    path("c/<slug:name>/find/", find, name="find"),
    path("c/<slug:name>/exports/<int:number>/push/", push_to_hub, {"kind": "dataset"}, name="push_export"),
    path("c/<slug:name>/training/models/<int:number>/push/", push_to_hub, {"kind": "model"}, name="push_model"),
    path("c/<slug:name>/exports/hub-token/", hub_token, name="hub_token"),
    path("backups/", backups.backups, name="backups"),
    path("backups/new/", backups.make_backup, name="make_backup"),
    path("backups/<str:file>/", backups.backup, name="backup"),
    path("backups/<str:file>/download/", backups.download_backup, name="download_backup"),
    path("backups/<str:file>/delete/", backups.delete_backup, name="delete_backup"),
    path("", include("annotation.urls")),
    path("", include("training.urls")),
    path("", include("benchmark.urls")),
    path("", include("api.urls")),
]
