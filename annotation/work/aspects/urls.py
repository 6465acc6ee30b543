"""Addresses of the aspects workspace."""

from django.urls import URLPattern, path

from annotation.work.aspects.views import aspects, passages, reviews
from annotation.work.aspects.views import second as second_person

urlpatterns: list[URLPattern] = [
    # All queries of the collection.
    path("c/<slug:name>/aspects/", aspects.queries, name="aspects"),
    path("c/<slug:name>/aspects/export/", aspects.export, name="aspects_export"),
    # A sample of queries whose aspects a second person weighs without seeing the first weights.
    path("c/<slug:name>/aspects/second-person/", second_person.sample, name="aspects_sample"),
    path("c/<slug:name>/aspects/second-person/weigh/", second_person.weigh, name="aspects_second"),
    # Reviews: another person accepts or changes the aspects of a query and its documents.
    path("c/<slug:name>/aspects/review/", reviews.overview, name="aspect_reviews"),
    path("c/<slug:name>/aspects/review/claim/", reviews.claim, name="aspect_review_claim"),
    path("c/<slug:name>/aspects/review/<int:review>/", reviews.review, name="aspect_review"),
    path("c/<slug:name>/aspects/review/<int:review>/undo/", reviews.undo, name="aspect_review_undo"),
    path("c/<slug:name>/aspects/review/<int:review>/release/", reviews.release, name="aspect_review_release"),
    # The workspace of one query: uploaded texts and documents are cut into passages, drafts wait for a decision.
    path("c/<slug:name>/aspects/<int:query>/", aspects.workshop, name="aspects_workshop"),
    path("c/<slug:name>/aspects/<int:query>/upload/", passages.upload, name="aspects_upload"),
    path("c/<slug:name>/aspects/<int:query>/incoming/", aspects.incoming, name="aspects_incoming"),
    path("c/<slug:name>/aspects/<int:query>/cut/<int:document>/", passages.cut, name="aspects_cut"),
    path("c/<slug:name>/aspects/<int:query>/passages/<int:draft>/", passages.draft, name="aspects_draft"),
    path("c/<slug:name>/aspects/<int:query>/passages/<int:draft>/again/", passages.fetch_again, name="aspects_again"),
    path(
        "c/<slug:name>/aspects/<int:query>/passages/<int:draft>/dismiss/",
        passages.dismiss,
        name="aspects_dismiss",
    ),
    # Last, because `act` matches each of the words above.
    path("c/<slug:name>/aspects/<int:query>/<slug:act>/", aspects.act, name="aspects_act"),
]
