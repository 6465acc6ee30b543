"""Settings of a collection from TOML: all or nothing, each refusal names its key."""

import tomllib

import pytest

from corpus.models import Collection
from tests.called import call
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_item, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def configure(tmp_path):
    """Run the command on a file of that text."""

    def run(text):
        path = tmp_path / "settings.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        finished = call("configure_collection", "books", path, "--json")
        assert finished.code == 0 or (finished.out == "" and finished.err.count("\n") == 1)
        return finished

    return run


def test_every_key_of_the_contract_is_set(configure):
    make_collection("books", grades=3)
    assert Collection.objects.get().checks == 0.1, "as the contract has it"
    text = """
        instruction = "Strict."
        grades = 4
        relevant_from = 2
        overlap = 3
        order = "random"
        lease_minutes = 5
        seed = 7
        audit = 0.1
        hourly_rate = 40
        checks = 0.2
        repeats = 0.05
        batch = 10
        pass_mark = 80
        daily_target = 40
        document_format = "markdown"
        arms = {hidden = 2, reveal = 1}
    """
    settings = tomllib.loads(text)
    assert set(configure(text).json["changed"]) == set(settings)
    books = Collection.objects.get()
    assert books.arms == {**settings.pop("arms"), "shown": 0}
    assert {key: getattr(books, key) for key in settings} == settings
    assert configure(text).json["changed"] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("colour = 1", "settings.toml, line 1: colour: There is no such option."),
        ("audit = nan", "line 1: audit: E"),
        ("checks = 0.6", "checks: Ensure this value is less than"),
        ('rubric = "thorough"', "rubric: Select a valid choice"),
        ("repeats = -0.05", "repeats: Ensure this value is greater than"),
        ("arms = {open = 1}", "arms: There is no such option."),
        ("arms = {shown = 0}", "arms: Give at least one arm a weight above 0."),
        ("arms = {shown = 101}", "arms: Ensure this value is less than or equal to 100."),
        ("arms = {shown = 0.5}", "arms: Enter a whole number."),
        ("lease_minutes = 1.5", "lease_minutes: Enter a whole number."),
        ("arms = 3", "arms: Enter a table of options."),
        ('overlap = "3"', "overlap: Enter a whole number."),
        ("overlap = true", "overlap: Enter a whole number."),
        ("# few\noverlap = 0", "line 2: overlap: Ensure this value is greater than or equal to 1."),
        ("instruction = 3", "instruction: Enter a text."),
        ('order = "newest"', "order: Select a valid choice. newest is not one of the available choices."),
        ("relevant_from = 2", "relevant_from: The lowest relevant grade would be 2, and the scale goes from 0 to 1"),
        ("overlap = ", "settings.toml: this is not TOML at its end"),
        (b'instruction = "caf\xe9"', "not UTF-8"),
    ],
)
def test_a_bad_value_is_refused_by_name(configure, text, names):
    make_collection("books", grades=1)
    refused = configure(text)
    assert refused.code == 2 and names in refused.err


def test_a_new_order_and_overlap_reach_open_items(configure):
    books = make_collection("books")
    item = make_item(make_pair(books), priority=0.0)
    configure('order = "query"\noverlap = 3')
    item.refresh_from_db()
    assert (item.priority, item.overlap) == (item.pair.query_id, 3)


def test_a_scale_that_judgments_contradict_is_refused(configure):
    books = make_collection("books", grades=3)
    pair = make_pair(books)
    make_judgment(pair, make_assessor(books, "alice", "human-import"), 3)
    assert configure("grades = 2").code == 2
    make_judgment(pair, make_assessor(books, "debate", "policy"), 1)
    assert configure("relevant_from = 2").code == 2
    assert configure("grades = 4").code == 0


def test_the_preset_dream_sets_what_the_paper_did_and_the_files_own_keys_go_first(configure):
    make_collection("books", overlap=1, arms={"shown": 1, "hidden": 1, "reveal": 0})
    changed = configure('preset = "dream"\npass_mark = 80').json["changed"]
    assert changed == ["overlap", "rounds", "pass_mark", "arms"]
    books = Collection.objects.get()
    assert (books.overlap, books.rounds, books.checks, books.pass_mark) == (3, "final", 0.1, 80)
    assert books.arms == {"shown": 1, "hidden": 0, "reveal": 0}
    assert "preset: " in configure('preset = "paper"').err
    assert configure("preset = [1]").code == 2


def test_the_preset_dream_makes_the_scale_yes_or_no_as_long_as_no_judgment_contradicts_that(configure):
    """Three people who say 1, 2 and 3 would disagree on grades, where the paper's three all say relevant."""
    books = make_collection("books", grades=3, relevant_from=2)
    configure('preset = "dream"')
    books.refresh_from_db()
    assert (books.grades, books.relevant_from) == (1, 1)
    Collection.objects.filter(pk=books.pk).update(grades=3, overlap=1)
    make_judgment(make_pair(books), make_assessor(books, "alice", "human-import"), 3)
    assert "Judgments above 1 exist" in configure('preset = "dream"').err
    books.refresh_from_db()
    assert (books.grades, books.overlap) == (3, 1)
