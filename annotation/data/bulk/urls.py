"""URLs of acts on many selected pairs."""

from django.urls import path

from annotation.data.bulk import views

urlpatterns = [
    path("c/<slug:name>/pairs/actions/", views.bulk_acts, name="bulk_acts"),
    path("c/<slug:name>/pairs/actions/<int:bulk>/", views.bulk_act, name="bulk_act"),
    path("c/<slug:name>/pairs/actions/<int:bulk>/run/", views.run_bulk_act, name="run_bulk_act"),
    path("c/<slug:name>/pairs/actions/<int:bulk>/undo/", views.undo_bulk_act, name="undo_bulk_act"),
]
