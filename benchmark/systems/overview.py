"""The benchmark's home: what there is, how safe its order is, what filling did, and what to do next."""

from typing import Any

from benchmark.models import Filling
from benchmark.systems import chosen
from corpus.models import Collection
from jobs.models import JobState, LeasedJob

MOVING = (Filling.State.PREPARING, Filling.State.JUDGING, Filling.State.FINISHING)
UNDER_WAY = (*MOVING, Filling.State.PEOPLE)


def benchmark_overview(collection: Collection) -> dict[str, Any]:
    """Everything that the home says, from rows and the newest reports: five statements."""
    runs, versions = chosen.runs_of(collection), chosen.versions_of(collection)
    safety = chosen.stored_report(chosen.newest_report(collection, compares=False), runs)
    report = chosen.stored_report(chosen.newest_report(collection, compares=True), runs)
    fillings = Filling.objects.filter(collection=collection).exclude(state=Filling.State.CANCELLED)
    filling = fillings.defer("pairs").order_by("-pk").first()
    ready = [run for run in runs if run.state == JobState.READY]
    making = [run for run in runs if not run.is_over]
    newest = versions[-1] if versions else None
    is_old = bool(safety and newest and safety.report.before_id != newest.pk)
    # The page asks for news while one of these moves. People take days, so a filling that waits for them does not.
    followed: list[LeasedJob | Filling] = [*making]
    followed += [one.report for one in (safety, report) if one is not None and not one.report.is_over]
    followed += [filling] if filling is not None and filling.state in MOVING else []
    # The first step that holds is the one to take: a key for the template, and whether it holds.
    steps = [
        ("runs", len(ready) < 2 and not making),
        ("wait", bool(making)),
        ("safety", safety is None),
        ("filling", filling is not None and filling.state in UNDER_WAY),
        ("fill", filling is None),
        ("report", report is None and len(versions) > 1),
        ("again", bool(report and report.new)),
        ("safety", is_old),
        ("done", True),
    ]
    return {
        "runs": runs,
        "versions": versions,
        "safety": safety,
        "report": report,
        "filling": filling,
        "ready": ready,
        "runs_in_progress": making,
        "followed": followed,
        "newest": newest,
        "is_old": is_old,
        "next": next(key for key, holds in steps if holds),
    }
