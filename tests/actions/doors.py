"""The doors of each action: where a test finds its form, its command and its operation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from annotation.data.bulk import services as bulk
from annotation.data.imports import importing
from annotation.data.web_search.searching import WEB_SEARCHES
from annotation.exports import services as exports
from annotation.home.judge_setup import services as models
from annotation.home.sharing import services as sharing
from annotation.quality.label_quality import services as audits
from annotation.work.comparing import services as comparing
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from annotation.work.settings import services as settings
from annotation.work.threads import services as threads
from benchmark.agents.grading import GRADINGS
from benchmark.agents.references import REFERENCES
from benchmark.agents.searching import SEARCHES
from benchmark.answers.evaluations import ANSWERS
from benchmark.gate import services as gate
from benchmark.hole_filling import services as hole_filling
from benchmark.report import services as reports
from benchmark.runs import services as runs
from benchmark.search_endpoints import services as search_endpoints
from benchmark.synthesis.lifecycle import STARTS
from config.hub import services as hub
from corpus.query_logs import services as query_logs
from judges.campaigns import services as campaigns
from training.curves import services as curves
from training.jobs import services as trainings


@dataclass(frozen=True)
class Doors:
    """Doors of an action: its operation, its command, and the sets of options that its pages show.

    Without an operation and a command it is made in the browser only: people do it, programs do not need it.
    """

    operation: str = ""
    command: str = ""
    file: str = ""  # A command that reads the options from a TOML file.
    forms: tuple[str, ...] = ()  # "module.NAME" of the options of a form that shows not all.
    page: bool = True


FIXED_KIND = ("kind",)  # The address of the form names it.
ENDPOINT_FORMS = (
    "benchmark.search_endpoints.forms.PLAIN_FIELDS",
    "benchmark.search_endpoints.forms.KNOWN_FIELDS",
    "tests.actions.doors.FIXED_KIND",
)
FIXED_NAME = ("name",)  # The page of a model shows it as its title.
DOORS: dict[Callable[..., Any], Doors] = {
    settings.change_settings: Doors(
        operation="PATCH /collections/{slug:name}/settings",
        file="configure_collection",
        forms=(
            "annotation.work.settings.views.WORK_OPTIONS",
            "corpus.collections.options.AMOUNTS",
            "annotation.work.quality_control.views.SETTINGS",
            "annotation.work.settings.views.PRESET",
        ),
    ),
    models.add_model: Doors(),
    models.change_model: Doors(
        forms=("annotation.home.judge_setup.views.CHANGEABLE", "tests.actions.doors.FIXED_NAME")
    ),
    hub.ask_push: Doors(command="hub"),
    campaigns.start_judging: Doors(operation="POST /collections/{slug:name}/campaigns", command="judge"),
    importing.correct_import: Doors(
        operation="POST /collections/{slug:name}/imports/{number}/options", command="import_collection"
    ),
    query_logs.import_queries: Doors(command="import_queries"),
    audits.draw_audits: Doors(operation="POST /collections/{slug:name}/audits/{number}/draw"),
    comparing.draw_comparisons: Doors(operation="POST /collections/{slug:name}/comparisons", command="comparisons"),
    hole_filling.start_filling: Doors(
        operation="POST /collections/{slug:name}/hole-fillings",
        command="holes",
        forms=("benchmark.hole_filling.views.TO_FILL", "benchmark.hole_filling.views.TO_SEND"),
    ),
    gate.decide_gate: Doors(operation="POST /collections/{slug:name}/gates", command="gate"),
    gate.judge_deciding: Doors(forms=("benchmark.gate.views.TO_JUDGE",), page=False),
    runs.make_run: Doors(
        operation="POST /collections/{slug:name}/runs", command="retrieve", forms=("benchmark.runs.views.SHOWN",)
    ),
    search_endpoints.add_endpoint: Doors(file="search_endpoints", forms=ENDPOINT_FORMS),
    search_endpoints.change_endpoint: Doors(file="search_endpoints", forms=ENDPOINT_FORMS),
    reports.ask_report: Doors(operation="POST /collections/{slug:name}/reports", command="report"),
    runs.import_runs: Doors(command="import_runs"),
    trainings.start_training: Doors(operation="POST /collections/{slug:name}/trainings", command="train"),
    SEARCHES.start: Doors(command="agents"),
    GRADINGS.start: Doors(command="agents"),
    REFERENCES.start: Doors(command="references"),
    ANSWERS.start: Doors(command="rag"),
    STARTS["bundles"]: Doors(command="synthesize"),
    STARTS["keywords"]: Doors(command="rewrite_queries"),
    STARTS["ask"]: Doors(command="write_queries"),
    COMPARISON_JUDGINGS.start: Doors(command="compare_by_judges"),
    WEB_SEARCHES.start: Doors(command="web_search"),
    trainings.use_model: Doors(operation="POST /collections/{slug:name}/models/{number}/{act}"),
    exports.create_export: Doors(operation="POST /collections/{slug:name}/exports", command="export"),
    threads.answer_thread: Doors(),
    bulk.run_act: Doors(operation="POST /collections/{slug:name}/pair-acts/{number}/run"),
    curves.start_curve: Doors(command="learning_curve"),
    sharing.share_page: Doors(),
}
