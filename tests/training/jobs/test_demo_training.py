"""What `make demo` trains on as its pages suggest: enough dev queries to test a gain, and few rows that are cut."""

from io import StringIO
from pathlib import Path

import pytest
from django.test import Client

from annotation.exports.forms import SetForm
from annotation.models import Role
from annotation.query_splits.named import suggest_split
from config.demo import load_collection
from corpus.models import Label
from tests.conftest import Manage
from tests.factories import make_collection, make_member, make_pair
from training.jobs import pages
from training.recipes.data import read_training_set
from training.recipes.metrics import kept_apart
from training.recipes.table import recipe_options

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("queries", "share"), [(0, 0.9), (6, 0.5), (40, 0.6), (100, 0.84), (200, 0.9)])
def test_the_share_for_training_leaves_dev_queries_for_a_test(queries: int, share: float) -> None:
    birds = make_collection("birds")
    Label.objects.bulk_create(Label(pair=make_pair(birds), grade=1, origin="people") for _ in range(queries))
    assert suggest_split(birds) == share
    assert SetForm(collection=birds)["split"].initial == share


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_demos_export_can_show_a_gain_and_cuts_at_most_a_twentieth(manage: Manage, tmp_path: Path) -> None:
    collection, _ = load_collection(tmp_path, StringIO())
    manage("judge", collection.name, "--wait", "--workers", 1)
    client = Client()
    client.force_login(make_member(collection, "alice", Role.ADMIN).user)
    form = SetForm(collection=collection)
    given = {"format": "prism"} | {name: form[name].initial for name in form.fields if form[name].initial is not None}
    assert client.post(f"/c/{collection.name}/exports/make/", given).status_code == 302
    ((folder, _label),) = pages.training_sets(collection)
    found = read_training_set(Path(folder))
    assert len(kept_apart(found.dev)) >= 5, f"split {given['split']}"
    pytest.importorskip("torch")
    from training.trainers.base import load_tokenizer
    from training.trainers.margins import PromptTokens
    from training.trainers.tiny_bases import tiny_base

    tokenizer = load_tokenizer(tiny_base(tmp_path / "base"))
    from training.recipes.rendering import QUORUM

    options = recipe_options("prism", {"preset": "tiny"})
    rows = PromptTokens(QUORUM.render, 0, 1, options.max_length - 60).encode(
        tokenizer, [(row.query, row.document, row.instruction) for row in found.train]
    )
    assert sum(row.is_cut for row in rows) <= 0.05 * len(rows)
