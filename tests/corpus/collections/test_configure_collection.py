"""Settings of a collection from TOML: all or nothing, each refusal names its key."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from corpus.collections.configure import configure_collection
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, Judgment
from tests.factories import make_collection, make_item, make_pair
from tests.settings_files import read_settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def configure(tmp_path):
    """Run the command on a file of that text; (exit code, JSON document or None, standard error)."""

    def run(text):
        path = tmp_path / "settings.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        out, err = StringIO(), StringIO()
        try:
            call_command("configure_collection", "books", str(path), "--json", stdout=out, stderr=err)
        except SystemExit as end:
            assert out.getvalue() == "" and err.getvalue().count("\n") == 1
            return end.code, None, err.getvalue()
        return 0, json.loads(out.getvalue()), err.getvalue()

    return run


def test_every_key_of_the_contract_is_set(configure):
    make_collection("books", grades=3)
    text = """
        instruction = "Strict."
        grades = 4
        relevant_from = 2
        overlap = 3
        order = "random"
        lease_minutes = 5
        seed = 7
    """
    code, document, _ = configure(text)
    wanted = ["instruction", "grades", "overlap", "order", "lease_minutes", "relevant_from", "seed"]
    assert code == 0 and document["changed"] == wanted
    books = Collection.objects.get()
    assert [getattr(books, key) for key in wanted] == ["Strict.", 4, 3, "random", 5, 2, 7]
    assert configure(text)[1]["changed"] == []


def test_the_share_of_audits_and_the_hourly_rate_are_numbers(configure):
    make_collection("books", audit=0.02)
    assert configure("audit = 0.1\nhourly_rate = 40")[1]["changed"] == ["audit", "hourly_rate"]
    books = Collection.objects.get()
    assert (books.audit, books.hourly_rate) == (0.1, 40)
    for bad in ("audit = 2", "audit = -0.1", "audit = nan", 'audit = "0.1"'):
        assert "line 1: audit: E" in configure(bad)[2], "Enter a number, or ensure that it is in the bounds"
    assert "hourly_rate: Ensure this value is greater than or equal to 0." in configure("hourly_rate = -1")[2]
    assert configure("audit = 0")[1]["changed"] == ["audit"]


def test_arms_are_a_table_of_weights(configure):
    make_collection("books")
    assert configure("arms = {hidden = 2, reveal = 1}")[1]["changed"] == ["arms"]
    assert Collection.objects.get().arms == {"shown": 0, "hidden": 2, "reveal": 1}
    for bad, said in (
        ("{open = 1}", "arms: There is no such option."),
        ("{shown = 0}", "arms: Give at least one arm a weight above 0."),
        ("{shown = 101}", "arms: Ensure this value is less than or equal to 100."),
        ("{shown = 0.5}", "arms: Enter a whole number."),
        ("3", "arms: Enter a table of options."),
    ):
        assert said in configure(f"arms = {bad}")[2]
    assert configure("arms = {shown = 1, hidden = 0, reveal = 0}")[1]["changed"] == ["arms"]


def test_checks_repeats_batches_and_the_pass_mark_are_settings(configure):
    make_collection("books")
    assert Collection.objects.get().checks == 0.1, "as the contract has it"
    code, document, _ = configure("checks = 0.2\nrepeats = 0.05\nbatch = 10\npass_mark = 80")
    assert code == 0 and document["changed"] == ["checks", "repeats", "batch", "pass_mark"]
    for bad in ("checks = 0.6", "repeats = -0.1", "batch = 4", "pass_mark = 101"):
        assert re.search(rf"{bad.split()[0]}: Ensure this value is (greater|less) than", configure(bad)[2])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("colour = 1", "settings.toml, line 1: colour: There is no such option."),
        ('overlap = "3"', "overlap: Enter a whole number."),
        ("overlap = true", "overlap: Enter a whole number."),
        ("# few\noverlap = 0", "line 2: overlap: Ensure this value is greater than or equal to 1."),
        ("instruction = 3", "instruction: Enter a text."),
        ('order = "newest"', "order: Select a valid choice. newest is not one of the available choices."),
        ("relevant_from = 2", "relevant_from: The lowest relevant grade would be 2, and the scale goes from 0 to 1"),
        ("lease_minutes = 1.5", "lease_minutes: Enter a whole number."),
        ("overlap = ", "settings.toml: this is not TOML at its end"),
        (b'instruction = "caf\xe9"', "not UTF-8"),
    ],
)
def test_a_bad_value_is_refused_by_name(configure, text, names):
    make_collection("books", grades=1)
    code, _, said = configure(text)
    assert code == 2 and names in said


def test_a_new_order_and_overlap_reach_open_items(configure):
    books = make_collection("books")
    item = make_item(make_pair(books), priority=0.0)
    configure('order = "query"\noverlap = 3')
    item.refresh_from_db()
    assert (item.priority, item.overlap) == (item.pair.query_id, 3)


def test_a_scale_that_judgments_contradict_is_refused(configure):
    books = make_collection("books", grades=3)
    pair = make_pair(books)
    person = Assessor.objects.create(collection=books, kind="human-import", name="alice")
    Judgment.objects.create(pair=pair, assessor=person, step="import", grade=3)
    assert configure("grades = 2")[0] == 2
    policy = Assessor.objects.create(collection=books, kind="policy", name="debate")
    Judgment.objects.create(pair=pair, assessor=policy, step="final", grade=1)
    assert configure("relevant_from = 2")[0] == 2
    assert configure("grades = 4")[0] == 0


def test_the_preset_dream_sets_what_the_paper_did_and_the_files_own_keys_go_first(configure):
    make_collection("books", overlap=1, arms={"shown": 1, "hidden": 1, "reveal": 0})
    assert configure('preset = "dream"\npass_mark = 80')[1]["changed"] == ["overlap", "rounds", "pass_mark", "arms"]
    books = Collection.objects.get()
    assert (books.overlap, books.rounds, books.checks, books.pass_mark) == (3, "final", 0.1, 80)
    assert books.arms == {"shown": 1, "hidden": 0, "reveal": 0}
    assert "preset: Select a valid choice. paper is not" in configure('preset = "paper"')[2]
    assert configure("preset = [1]")[0] == 2


def test_documents_are_markdown_and_a_day_has_a_target(tmp_path: Path) -> None:
    collection = make_collection("books")
    path = tmp_path / "books.toml"
    path.write_text("markdown = true\ndaily_target = 40\n")
    assert configure_collection(collection, read_settings(path)) == ["daily_target", "markdown"]
    path.write_text('markdown = "yes"\n')
    with pytest.raises(BadInput, match="markdown: Enter yes or no"):
        read_settings(path)


def test_the_preset_dream_makes_the_scale_yes_or_no_as_long_as_no_judgment_contradicts_that(configure):
    """Three people who say 1, 2 and 3 would disagree on grades, where the paper's three all say relevant."""
    books = make_collection("books", grades=3, relevant_from=2)
    assert {"grades", "relevant_from"} <= set(configure('preset = "dream"')[1]["changed"])
    books.refresh_from_db()
    assert (books.grades, books.relevant_from) == (1, 1)

    Collection.objects.filter(pk=books.pk).update(grades=3, overlap=1)
    person = Assessor.objects.create(collection=books, kind="human-import", name="alice")
    Judgment.objects.create(pair=make_pair(books), assessor=person, step="import", grade=3)
    code, _, said = configure('preset = "dream"')
    assert code == 2 and "Judgments above 1 exist" in said
    books.refresh_from_db()
    assert (books.grades, books.overlap) == (3, 1)
