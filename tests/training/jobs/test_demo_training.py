"""What `make demo` trains on as its pages suggest: enough dev queries to test a gain."""

from io import StringIO
from pathlib import Path

import pytest

from annotation.exports.forms import ExportForm, suggest_split
from annotation.models import Role
from config.demo import load_collection
from corpus.models import Label
from tests.factories import client_of, make_collection, make_member, make_pair
from training.jobs import pages
from training.recipes.data import read_training_set
from training.recipes.metrics import held_out_queries

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("queries", "share"), [(0, 0.9), (6, 0.5), (40, 0.6), (100, 0.84), (200, 0.9)])
def test_the_share_for_training_leaves_dev_queries_for_a_test(queries, share):
    birds = make_collection("birds")
    Label.objects.bulk_create(Label(pair=make_pair(birds), grade=1, origin="people") for _ in range(queries))
    assert suggest_split(birds) == share
    assert ExportForm(collection=birds)["split"].initial == share


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_demos_export_can_show_a_gain(manage, tmp_path):
    collection, _ = load_collection(tmp_path, StringIO())
    manage("judge", collection.name, "--wait", "--workers", 1)
    client = client_of(make_member(collection, "alice", Role.ADMIN))
    form = ExportForm(collection=collection)
    given = {"format": "prism"} | {name: form[name].initial for name in form.fields if form[name].initial is not None}
    assert client.post(f"/c/{collection.name}/exports/make/", given).status_code == 302
    ((folder, _label),) = pages.training_sets(collection)
    assert len(held_out_queries(read_training_set(Path(folder)).dev)) >= 5, f"split {given['split']}"
