"""Addresses of the benchmark: runs, how safe their order is, filling, report, qrels versions, suites."""

from django.urls import URLPattern, path

from benchmark.bounds import views as safety
from benchmark.hole_filling import views
from benchmark.qrels import views as qrels
from benchmark.report.views import report
from benchmark.runs import views as runs
from benchmark.suites import views as suites
from benchmark.systems.views import home, queries, systems

HERE = "c/<slug:name>/benchmark/"

urlpatterns: list[URLPattern] = [
    path(HERE, home.benchmark, name="benchmark"),
    path(f"{HERE}runs/", runs.runs, name="runs"),
    path(f"{HERE}runs/upload/", runs.upload, name="upload_runs"),
    path(f"{HERE}runs/make/<slug:kind>/", runs.make, name="make_run"),
    path(f"{HERE}runs/<int:run>/", systems.system, name="system"),
    path(f"{HERE}runs/<int:run>/run.txt", runs.run_file, name="run_file"),
    path(f"{HERE}runs/<int:run>/delete/", runs.delete, name="delete_run"),
    path(f"{HERE}runs/<int:run>/<slug:act>/", runs.control, name="control_run"),
    path(f"{HERE}safety/", safety.safety, name="safety"),
    path(f"{HERE}safety/send/", safety.send, name="send_pairs"),
    path(f"{HERE}filling/", views.fillings, name="fillings"),
    path(f"{HERE}filling/<int:filling>/", views.filling, name="filling"),
    path(f"{HERE}filling/<int:filling>/<slug:act>/", views.control, name="control_filling"),
    path(f"{HERE}report/", report.newest, name="benchmark_report"),
    path(f"{HERE}report/make/", report.make, name="make_report"),
    path(f"{HERE}report/<int:report>/", report.report, name="report"),
    path(f"{HERE}report/<int:report>/leaderboard/", report.leaderboard, name="leaderboard"),
    path(f"{HERE}queries/", queries.queries, name="benchmark_queries"),
    path(f"{HERE}queries/<int:query>/", queries.query, name="benchmark_query"),
    path(f"{HERE}queries/<int:query>/<int:document>/", queries.text, name="benchmark_text"),
    path(f"{HERE}qrels/", qrels.versions, name="qrels"),
    path(f"{HERE}qrels/diff/", qrels.diff, name="qrels_diff"),
    path(f"{HERE}qrels/<int:number>.txt", qrels.qrels_file, name="qrels_file"),
    path("suites/", suites.suites, name="suites"),
    path("suites/<int:suite>/", suites.suite, name="suite"),
    path("suites/<int:suite>/<slug:act>/", suites.control, name="control_suite"),
]
