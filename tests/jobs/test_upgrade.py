"""What somebody had asked for before jobs were rows waits for a worker after the upgrade."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from annotation.models.aspects import PassageDraft
from jobs.models import BackgroundJob
from tests.aspects_scene import ice_scene
from tests.factories import make_collection

pytestmark = pytest.mark.django_db(transaction=True)
STATES = ("waiting", "fetching", "ready", "failed")


def upgraded(before: tuple[str, str], fill: Callable[[MigrationExecutor], None]) -> set[tuple[str, int]]:
    """What waits after `fill` has written as the release of that migration did."""
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        old = MigrationExecutor(connection)
        old.migrate([before])
        fill(old)
    finally:
        MigrationExecutor(connection).migrate(newest)
    return set(BackgroundJob.objects.filter(state="waiting").values_list("kind", "subject"))


@pytest.mark.slow
def test_figures_that_were_asked_for_are_computed_after_the_upgrade() -> None:
    some, none = make_collection("some").pk, make_collection("none").pk

    def fill(old: MigrationExecutor) -> None:
        apps = old.loader.project_state([("annotation", "0022_export_records")]).apps
        computed, agreement = apps.get_model("annotation", "Computed"), apps.get_model("annotation", "StoredAgreement")
        near = {"near": {"asked": "2026-11-01T00:00:00+00:00", "compared": 4}}
        computed.objects.create(collection_id=some, asked_at="2026-11-01T00:00Z", values=near)
        computed.objects.create(collection_id=none, values={"near": {"asked": ""}})
        for key, asked_at in (("a", "2026-11-01T00:00Z"), ("b", None)):
            agreement.objects.create(collection_id=some, key=key, asked_at=asked_at)
        keys.append(agreement.objects.get(key="a").pk)

    keys: list[int] = []
    assert upgraded(("annotation", "0022_export_records"), fill) == {
        ("annotation.compute_statistics", some),
        ("annotation.compare_near_pairs", some),
        ("annotation.compute_agreement", keys[0]),
    }


@pytest.mark.slow
def test_gold_arguments_and_pages_that_were_asked_for_are_not_forgotten() -> None:
    collection, query, people = ice_scene()
    drafts = {state: PassageDraft.objects.create(query=query, asked_by=people["bob"], state=state) for state in STATES}
    keys: list[int] = []

    def fill(old: MigrationExecutor) -> None:
        apps = old.loader.project_state([("annotation", "0023_stored_results_are_jobs")]).apps
        requests = apps.get_model("annotation", "ArgumentsRequest").objects
        for values in ({"tries": 2}, {"tries": 30}, {"ended_at": "2026-11-01T00:00Z"}):
            keys.append(requests.create(collection_id=collection.pk, **values).pk)

    assert upgraded(("annotation", "0023_stored_results_are_jobs"), fill) == {
        ("annotation.write_gold_reasons", keys[0]),
        ("annotation.fetch_passage", drafts["waiting"].pk),
        ("annotation.fetch_passage", drafts["fetching"].pk),
    }
