"""Addresses of judging, of a member's own judgments and of the pages of gold."""

from django.urls import URLPattern, path

from annotation.work.judging import evidence, special_views, views

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/judge/", views.judge, name="judge"),
    path("c/<slug:name>/judge/next/", views.judge_next, name="judge_next"),
    path("c/<slug:name>/judge/submit/", views.judge_decide, {"decision": views.SUBMIT}, name="judge_submit"),
    path(
        "c/<slug:name>/judge/evidence/", views.judge_decide, {"decision": evidence.WRITE_TEXTS}, name="judge_evidence"
    ),
    path("c/<slug:name>/judge/skip/", views.judge_decide, {"decision": views.SKIP}, name="judge_skip"),
    path("c/<slug:name>/judge/flag/", views.judge_decide, {"decision": views.FLAG}, name="judge_flag"),
    path("c/<slug:name>/judge/draft/", views.judge_draft, name="judge_draft"),
    path("c/<slug:name>/judge/query/", views.judge_query, name="judge_query"),
    path("c/<slug:name>/judge/query/next/", views.judge_query_next, name="judge_query_next"),
    path(
        "c/<slug:name>/judge/query/submit/",
        views.judge_query_decide,
        {"decision": views.SUBMIT},
        name="judge_query_submit",
    ),
    path(
        "c/<slug:name>/judge/query/skip/", views.judge_query_decide, {"decision": views.SKIP}, name="judge_query_skip"
    ),
    path(
        "c/<slug:name>/judge/query/flag/", views.judge_query_decide, {"decision": views.FLAG}, name="judge_query_flag"
    ),
    path("c/<slug:name>/judge/query/undo/", views.judge_query_undo, name="judge_query_undo"),
    path("c/<slug:name>/judge/undo/", views.judge_undo, name="judge_undo"),
    path("c/<slug:name>/judge/history/", views.judge_history, name="judge_history"),
    path("c/<slug:name>/judge/history/<int:item>/", views.judge_history_item, name="judge_history_item"),
    path("c/<slug:name>/judge/consent/", views.judge_consent, name="judge_consent"),
    path("c/<slug:name>/judge/retake/", views.judge_retake, name="judge_retake"),
    path("c/<slug:name>/judge/returned/", views.judge_returned, name="judge_returned"),
    path("c/<slug:name>/judge/guidelines/", views.judge_guidelines, name="judge_guidelines"),
    path("c/<slug:name>/gold/grade/", special_views.grade_gold, name="grade_gold"),
    path("c/<slug:name>/gold/review/", special_views.gold_review, name="gold_review"),
]
