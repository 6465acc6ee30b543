"""Addresses of judging, adjudication and my judgments (CONTRACT, Addresses for programs that judge)."""

from django.urls import URLPattern, path

from annotation.views import adjudicating, history, judging, judging_query

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/judge/", judging.judge, name="judge"),
    path("c/<slug:name>/judge/next/", judging.judge_next, name="judge_next"),
    path("c/<slug:name>/judge/submit/", judging.judge_submit, name="judge_submit"),
    path("c/<slug:name>/judge/evidence/", judging.judge_evidence, name="judge_evidence"),
    path("c/<slug:name>/judge/skip/", judging.judge_skip, name="judge_skip"),
    path("c/<slug:name>/judge/flag/", judging.judge_flag, name="judge_flag"),
    path("c/<slug:name>/judge/draft/", judging.judge_draft, name="judge_draft"),
    path("c/<slug:name>/judge/query/", judging_query.judge_query, name="judge_query"),
    path("c/<slug:name>/judge/query/next/", judging_query.judge_query_next, name="judge_query_next"),
    path("c/<slug:name>/judge/query/submit/", judging_query.judge_query_submit, name="judge_query_submit"),
    path("c/<slug:name>/judge/query/skip/", judging_query.judge_query_skip, name="judge_query_skip"),
    path("c/<slug:name>/judge/query/flag/", judging_query.judge_query_flag, name="judge_query_flag"),
    path("c/<slug:name>/judge/query/undo/", judging_query.judge_query_undo, name="judge_query_undo"),
    path("c/<slug:name>/judge/undo/", judging.judge_undo, name="judge_undo"),
    path("c/<slug:name>/judge/history/", history.judge_history, name="judge_history"),
    path("c/<slug:name>/judge/history/<int:item>/", history.judge_history_item, name="judge_history_item"),
    path("c/<slug:name>/adjudicate/", adjudicating.adjudicate, name="adjudicate"),
    path("c/<slug:name>/adjudicate/submit/", adjudicating.adjudicate_submit, name="adjudicate_submit"),
    path("c/<slug:name>/adjudicate/undo/", adjudicating.adjudicate_undo, name="adjudicate_undo"),
]
