"""Addresses of the benchmark: leaderboard, runs, holes, gate, reports, queries, qrels, answers, agents, suites."""

from django.urls import URLPattern, path

from benchmark.agents import urls as agents
from benchmark.answers import urls as answers
from benchmark.endpoint_history import views as endpoint_history
from benchmark.gate import urls as gate
from benchmark.hole_filling import views
from benchmark.qrels import views as qrels
from benchmark.report import views as report
from benchmark.report.systems import views as systems
from benchmark.runs import views as runs
from benchmark.runs.builders import RUNS
from benchmark.search_endpoints import urls as search_endpoints
from benchmark.suites import views as suites
from benchmark.synthesis import views as synthesis
from benchmark.synthesis.lifecycle import SYNTHESES
from judges.model_jobs.pages import control_path

HERE = "c/<slug:name>/benchmark/"

urlpatterns: list[URLPattern] = [
    path(HERE, report.leaderboard, name="benchmark"),
    path(f"{HERE}compute/", report.compute_leaderboard, name="compute_leaderboard"),
    path(f"{HERE}compare/", report.compare_runs, name="compare_runs"),
    path(f"{HERE}runs/", runs.runs, name="runs"),
    path(f"{HERE}runs/upload/", runs.upload_runs, name="upload_runs"),
    path(f"{HERE}runs/make/", runs.make_run, name="make_run"),
    path(f"{HERE}runs/<int:run>/", systems.system, name="system"),
    path(f"{HERE}runs/<int:run>/run.txt", runs.run_file, name="run_file"),
    path(f"{HERE}runs/<int:run>/delete/", runs.delete_run, name="delete_run"),
    control_path(f"{HERE}runs/<int:run>/", RUNS, "control_run"),
    path(f"{HERE}search/<str:endpoint>/", endpoint_history.endpoint_history, name="endpoint_history"),
    path(f"{HERE}hole-filling/", views.fillings, name="hole_fillings"),
    path(f"{HERE}hole-filling/send/", views.send_pairs, name="send_pairs"),
    path(f"{HERE}hole-filling/<int:filling>/", views.filling, name="hole_filling"),
    path(f"{HERE}hole-filling/<int:filling>/<slug:act>/", views.control_filling, name="control_filling"),
    path(f"{HERE}report/", report.newest_report, name="benchmark_report"),
    path(f"{HERE}report/make/", report.make_report, name="make_report"),
    path(f"{HERE}report/<int:report>/", report.report, name="report"),
    path(f"{HERE}queries/", systems.benchmark_queries, name="benchmark_queries"),
    path(f"{HERE}queries/<int:query>/", systems.benchmark_query, name="benchmark_query"),
    path(f"{HERE}queries/<int:query>/<int:document>/", systems.benchmark_text, name="benchmark_text"),
    path(f"{HERE}qrels/", qrels.versions, name="qrels"),
    path(f"{HERE}qrels/diff/", qrels.qrels_diff, name="qrels_diff"),
    path(f"{HERE}qrels/<int:number>.txt", qrels.qrels_file, name="qrels_file"),
    *gate.urlpatterns,
    *answers.urlpatterns,
    *agents.urlpatterns,
    path(f"{HERE}synthesis/", synthesis.syntheses, name="syntheses"),
    path(f"{HERE}synthesis/<int:synthesis>/", synthesis.synthesis, name="synthesis"),
    path(f"{HERE}synthesis/<int:synthesis>/bundles.jsonl", synthesis.synthesis_file, name="synthesis_file"),
    path(f"{HERE}synthesis/<int:synthesis>/<int:place>/", synthesis.synthetic_bundle, name="synthetic_bundle"),
    path(f"{HERE}synthesis/<int:synthesis>/import/", synthesis.import_synthesis, name="import_synthesis"),
    control_path(f"{HERE}synthesis/<int:synthesis>/", SYNTHESES, "control_synthesis"),
    *search_endpoints.urlpatterns,
    path("suites/", suites.suites, name="suites"),
    path("suites/<int:suite>/", suites.suite, name="suite"),
    path("suites/<int:suite>/<slug:act>/", suites.control_suite, name="control_suite"),
]
