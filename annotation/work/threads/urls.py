"""URLs of answers to comments and flags."""

from django.urls import path

from annotation.work.threads import views

urlpatterns = [
    path("c/<slug:name>/judge/replies/", views.replies, name="replies"),
    path("c/<slug:name>/judge/replies/seen/", views.replies_seen, name="replies_seen"),
    # `<int:number>` is the public id of an assignment of the item.
    path("c/<slug:name>/threads/<int:item>/<int:number>/", views.answer_thread, name="answer_thread"),
]
