"""URLs of read-only links; the pages that they show are in config.sharing."""

from django.urls import path

from annotation.home.sharing import views

urlpatterns = [
    path("c/<slug:name>/share/", views.share_links, name="share_links"),
    path("c/<slug:name>/share/<int:link>/revoke/", views.revoke_share_link, name="revoke_share_link"),
]
