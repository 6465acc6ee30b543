"""URLs of acts on many selected pairs, and of one pair with its acts."""

from django.urls import path

from annotation.data.bulk import one_pair, views

urlpatterns = [
    path("c/<slug:name>/pairs/actions/", views.bulk_acts, name="bulk_acts"),
    path("c/<slug:name>/pairs/actions/<int:bulk>/", views.bulk_act, name="bulk_act"),
    path("c/<slug:name>/pairs/actions/<int:bulk>/run/", views.run_bulk_act, name="run_bulk_act"),
    path("c/<slug:name>/pairs/actions/<int:bulk>/undo/", views.undo_bulk_act, name="undo_bulk_act"),
    path("c/<slug:name>/pairs/<int:pair>/", one_pair.pair, name="pair"),
    path("c/<slug:name>/pairs/<int:pair>/act/", one_pair.act_on_pair, name="act_on_pair"),
    path("c/<slug:name>/pairs/<int:pair>/note/", one_pair.write_note, name="write_note"),
]
