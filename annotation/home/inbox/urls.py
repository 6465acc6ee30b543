"""URLs of the inbox."""

from django.urls import path

from annotation.home.inbox import views

urlpatterns = [
    path("c/<slug:name>/inbox/", views.inbox, name="inbox"),
    path("c/<slug:name>/inbox/seen/", views.mark_seen, name="inbox_seen"),
]
