"""Addresses of judging, of my judgments and of the pages of gold."""

from django.urls import URLPattern, path

from annotation.judging.views import evidence, gold, history, judging, onboarding, query

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/judge/", judging.judge, name="judge"),
    path("c/<slug:name>/judge/next/", judging.judge_next, name="judge_next"),
    path("c/<slug:name>/judge/submit/", judging.judge_submit, name="judge_submit"),
    path("c/<slug:name>/judge/evidence/", evidence.judge_evidence, name="judge_evidence"),
    path("c/<slug:name>/judge/skip/", judging.judge_skip, name="judge_skip"),
    path("c/<slug:name>/judge/flag/", judging.judge_flag, name="judge_flag"),
    path("c/<slug:name>/judge/draft/", judging.judge_draft, name="judge_draft"),
    path("c/<slug:name>/judge/query/", query.judge_query, name="judge_query"),
    path("c/<slug:name>/judge/query/next/", query.judge_query_next, name="judge_query_next"),
    path("c/<slug:name>/judge/query/submit/", query.judge_query_submit, name="judge_query_submit"),
    path("c/<slug:name>/judge/query/skip/", query.judge_query_skip, name="judge_query_skip"),
    path("c/<slug:name>/judge/query/flag/", query.judge_query_flag, name="judge_query_flag"),
    path("c/<slug:name>/judge/query/undo/", query.judge_query_undo, name="judge_query_undo"),
    path("c/<slug:name>/judge/undo/", judging.judge_undo, name="judge_undo"),
    path("c/<slug:name>/judge/history/", history.judge_history, name="judge_history"),
    path("c/<slug:name>/judge/history/<int:item>/", history.judge_history_item, name="judge_history_item"),
    path("c/<slug:name>/judge/consent/", onboarding.judge_consent, name="judge_consent"),
    path("c/<slug:name>/judge/returned/", onboarding.judge_returned, name="judge_returned"),
    path("c/<slug:name>/judge/guidelines/", onboarding.judge_guidelines, name="judge_guidelines"),
    path("c/<slug:name>/gold/grade/", gold.grade_gold, name="grade_gold"),
    path("c/<slug:name>/gold/review/", gold.gold_review, name="gold_review"),
]
