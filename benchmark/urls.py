"""Addresses of the benchmark: runs, how safe their order is, filling, report, qrels versions, suites."""

from django.urls import URLPattern, path

from benchmark.bounds import views as safety
from benchmark.hole_filling import views
from benchmark.qrels import views as qrels
from benchmark.report import views as report
from benchmark.runs import views as runs
from benchmark.suites import views as suites
from benchmark.systems import views as systems

HERE = "c/<slug:name>/benchmark/"

urlpatterns: list[URLPattern] = [
    path(HERE, systems.benchmark, name="benchmark"),
    path(f"{HERE}runs/", runs.runs, name="runs"),
    path(f"{HERE}runs/upload/", runs.upload_runs, name="upload_runs"),
    path(f"{HERE}runs/make/<slug:kind>/", runs.make_run, name="make_run"),
    path(f"{HERE}runs/<int:run>/", systems.system, name="system"),
    path(f"{HERE}runs/<int:run>/run.txt", runs.run_file, name="run_file"),
    path(f"{HERE}runs/<int:run>/delete/", runs.delete_run, name="delete_run"),
    path(f"{HERE}runs/<int:run>/<slug:act>/", runs.control_run, name="control_run"),
    path(f"{HERE}bounds/", safety.ranking_bounds, name="ranking_bounds"),
    path(f"{HERE}bounds/send/", safety.send_pairs, name="send_pairs"),
    path(f"{HERE}hole-filling/", views.fillings, name="hole_fillings"),
    path(f"{HERE}hole-filling/<int:filling>/", views.filling, name="hole_filling"),
    path(f"{HERE}hole-filling/<int:filling>/<slug:act>/", views.control_filling, name="control_filling"),
    path(f"{HERE}report/", report.newest_report, name="benchmark_report"),
    path(f"{HERE}report/make/", report.make_report, name="make_report"),
    path(f"{HERE}report/<int:report>/", report.report, name="report"),
    path(f"{HERE}report/<int:report>/leaderboard/", report.leaderboard, name="leaderboard"),
    path(f"{HERE}queries/", systems.benchmark_queries, name="benchmark_queries"),
    path(f"{HERE}queries/<int:query>/", systems.benchmark_query, name="benchmark_query"),
    path(f"{HERE}queries/<int:query>/<int:document>/", systems.benchmark_text, name="benchmark_text"),
    path(f"{HERE}qrels/", qrels.versions, name="qrels"),
    path(f"{HERE}qrels/diff/", qrels.qrels_diff, name="qrels_diff"),
    path(f"{HERE}qrels/<int:number>.txt", qrels.qrels_file, name="qrels_file"),
    path("suites/", suites.suites, name="suites"),
    path("suites/<int:suite>/", suites.suite, name="suite"),
    path("suites/<int:suite>/<slug:act>/", suites.control_suite, name="control_suite"),
]
