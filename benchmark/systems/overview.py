"""The benchmark's home: what there is, how safe its order is, what filling did, and what to do next."""

from typing import Any

from django.utils.translation import gettext as _

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
    open_order = bool(safety and safety.result.get("safety", {}).get("unsettled"))
    # The page asks for news while one of these moves. People take days, so a filling that waits for them does not.
    followed: list[LeasedJob | Filling] = [*making]
    followed += [one.report for one in (safety, report) if one is not None and not one.report.is_over]
    followed += [filling] if filling is not None and filling.state in MOVING else []
    # The first step that holds is the one to take: a key for the template, whether it holds, and why.
    steps = [
        ("runs", len(ready) < 2 and not making,
         _("Bring two runs or more: only systems beside each other have an order.")),
        ("wait", bool(making), _("Runs are being made. The page follows them.")),
        ("safety", safety is None, _("Work out how far today's order can be trusted.")),
        ("filling", filling is not None and filling.state in UNDER_WAY,
         _("A filling is under way: see how far it is, and who is waited for.")),
        ("fill", filling is None,
         _("Some orders are not settled: judge the pairs that decide them.") if open_order
         else _("Judge what nobody judged, and see whether the order holds.")),
        ("report", report is None and len(versions) > 1,
         _("There is a new version of the qrels: see what it does to every ranking.")),
        ("again", bool(report and report.new), _("Runs came after the last report: work it out again.")),
        ("safety", is_old, _("Look how safe the order is by the newest qrels.")),
        ("done", True, _("Every step is done. A new system is one more run: its holes come to the same pool.")),
    ]  # fmt: skip
    return {
        "runs": runs,
        "versions": versions,
        "safety": safety,
        "report": report,
        "filling": filling,
        "ready": ready,
        "runs_in_progress": making,
        "followed": followed,
        "is_moving": bool(followed),
        "newest": newest,
        "is_old": is_old,
        "next": next((key, why) for key, holds, why in steps if holds),
    }
