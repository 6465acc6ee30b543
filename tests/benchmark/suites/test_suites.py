"""Suites: members' columns, the unweighted mean, and blanks where a system or a report is missing."""

from dataclasses import replace
from typing import Any

import pytest

from annotation.models import AuditEntry, Role
from annotation.templatetags.reports import few
from benchmark.hole_filling.funnel import Funnel
from benchmark.models import Filling, Report, Suite
from benchmark.qrels import versions
from benchmark.report import reports
from benchmark.suites import groups
from corpus.errors import BadInput
from tests.benchmark.report.test_reports import World
from tests.benchmark_scene import collection_of_books, filled, runs_of, whole_scene
from tests.called import call
from tests.factories import client_of, make_member

pytestmark = pytest.mark.django_db


class Two:
    """Books has the systems one and two, films only one (the other run is called three)."""

    def __init__(self) -> None:
        self.books, self.films = World(), World()
        self.films.two.name = "three"
        self.films.two.save()
        self.suite = groups.make_suite(name="both", collections=[self.books.collection, self.films.collection])

    def report(self, world: World) -> Report:
        return reports.ensure_report(world.collection, world.before, world.after, [world.one, world.two])


def command(*args: object) -> Any:
    """What the command printed: a document, or one line of complaint."""
    ended = call("suite", *args, "--json")
    assert (ended.code, bool(ended.out)) in ((0, True), (2, False))
    return ended.json if ended.out else ended.err


def test_members_stand_in_columns_beside_their_unweighted_mean_and_one_that_lacks_a_system_blanks_it():
    both = Two()
    books = both.report(both.books)
    rows = groups.suite_lines(groups.suite_columns(both.suite), "ndcg")
    assert {row["system"] for row in rows} == {"one", "two"} and all(row["mean"] is None for row in rows)
    films = both.report(both.films)
    reports.ensure_report(both.films.collection, both.films.before, both.films.before, [both.films.one])
    assert groups.member_report(both.films.collection) == films, "the newest report of two versions speaks for it"
    assert groups.member_report(both.films.collection, k=3) is None
    lines = {line["system"]: line for line in groups.suite_lines(groups.suite_columns(both.suite), "hit")}
    given = [report.result["systems"][0]["values"]["hit"] for report in (books, films)]
    assert lines["one"]["values"] == given
    assert lines["one"]["mean"] == {
        name: pytest.approx((given[0][name] + given[1][name]) / 2) for name in ("before", "after", "change")
    }
    rows = groups.suite_lines(groups.suite_columns(both.suite), "ndcg")
    assert [(row["system"], row["mean"] is None) for row in rows] == [("one", False), ("three", True), ("two", True)]
    assert rows[1]["values"][0] is None and rows[2]["values"][1] is None
    csv = groups.suite_table(both.suite, groups.suite_columns(both.suite), rows, "ndcg").csv().splitlines()
    names = [world.collection.name for world in (both.books, both.films)]
    figures = ",".join(f"{name},{name} change" for name in (*names, "mean"))
    assert csv[0] == f"system,{figures},mean letters,95% from,95% to,p,p (Holm)"
    assert csv[2].startswith("three,,,") and csv[2].endswith(",,,,,,")


def test_means_are_tested_over_the_queries_of_all_members():
    """One and two in both: of four queries only those of two differ, so no p is below 2 of 4 sign patterns."""
    worlds = [World(), World()]
    suite = groups.make_suite(name="alike", collections=[one.collection for one in worlds])
    for world in worlds:
        reports.ensure_report(world.collection, world.before, world.after, [world.one, world.two])
    found = groups.suite_columns(suite)
    rows = {row["system"]: row for row in groups.suite_lines(found, "ndcg")}
    for row in rows.values():
        assert row["mean"] is not None and row["tests"]["change"] == pytest.approx(row["mean"]["change"])
        assert row["tests"]["low"] <= row["mean"]["change"] <= row["tests"]["high"]
        assert row["estimate"].low <= row["mean"]["after"] <= row["estimate"].high and row["estimate"].n == 4
        assert all(few(cell).endswith("n = 2</span>") for _value, cell in row["cells"])
        assert row["tests"]["p"] >= 0.25 and row["tests"]["p_holm"] == min(1.0, 2 * row["tests"]["p"])
        assert row["tests"]["letters_before"] == row["tests"]["letters_after"] == "a", (
            "too few queries tell nothing apart"
        )
    assert {row["system"]: row["tests"] for row in groups.suite_lines(found, "judged")} == {"one": {}, "two": {}}
    assert r"\mathrm{a}" in groups.suite_table(suite, found, list(rows.values()), "ndcg").latex()


@pytest.mark.slow
def test_many_queries_tell_systems_apart_and_the_page_shows_it(monkeypatch):
    collection, charlie = whole_scene()
    other = collection_of_books("stones")
    make_member(other, "charlie", Role.ADMIN)
    runs = runs_of(other)
    before = versions.original_version(other)
    reports.ensure_report(other, before, filled(other, runs).after, runs)
    suite = groups.make_suite(name="both", collections=[collection, other])
    rows = {row["system"]: row["tests"] for row in groups.suite_lines(groups.suite_columns(suite), "ndcg")}
    assert len({found["letters_after"] for found in rows.values()}) > 1
    assert rows["dense-large"]["p_holm"] < 0.01 and rows["dense-large"]["low"] > 0
    monkeypatch.setattr(groups, "AT_ONCE", 100)
    client = client_of(charlie)

    def page(query=""):
        return client.get(f"/suites/{suite.pk}/{query}").text

    recall = page("?measure=recall")
    assert "Test significance" in recall and 'class="letters"' not in recall, "many are tested when that is asked for"
    assert 'class="letters"' in page("?measure=recall&tests=1")
    recall = page("?measure=recall")
    assert 'class="letters"' in recall and "Test significance" not in recall, "it is kept from then on"
    assert f'<span class="letters">{rows["dense-large"]["letters_after"]}</span>' in page()
    assert "< 0.001" in page().replace("&lt;", "<")
    assert 'class="letters"' not in page("?measure=hole"), "Hole@k orders no systems"


def test_what_cannot_be_a_suite_is_refused():
    collection = World().collection
    groups.make_suite(name="once", collections=[collection])
    for name, members, problem in (
        ("none", [], "between 1 and 100 collections"),
        ("two words", [collection], "Use letters"),
        ("once", [collection], "exists"),
    ):
        with pytest.raises(BadInput, match=problem):
            groups.make_suite(name=name, collections=members)
    assert Suite.objects.count() == 1 and AuditEntry.objects.filter(act="suite.made").count() == 1


def test_the_funnels_of_the_members_stand_in_one_table_with_their_sum(tmp_path):
    """The first two rows of DREAM table 8, and a member whose debates had one round."""
    worlds = [World(), World(), World()]
    names = [world.collection.name for world in worlds]
    command("make", "all", *names)
    assert "holes NAME --fill" in command("funnel", "all")
    steps = [(35_579, 20_137, [17_893, 2_244, 1_382, 862]), (41_656, 11_126, [10_558, 568, 422, 146]), (10, 8, [7, 1])]
    for world, (candidates, left, debated) in zip(worlds, steps, strict=True):
        pairs = zip(debated[::2], debated[1::2], strict=True)
        rounds = [{"round": at, "agreed": agreed, "open": still} for at, (agreed, still) in enumerate(pairs, 1)]
        begun = Funnel.begun(candidates + 5, 5, candidates, 0)
        funnel = replace(begun, after_filter=left, rounds=rounds, to_people=debated[-1], relevant=3).document
        about = {"collection": world.collection, "depth": 10, "before": world.before}
        Filling.objects.create(**about, funnel={}, state="preparing")
        Filling.objects.create(**about, funnel=funnel)
        Filling.objects.create(**about, funnel={**funnel, "pool": 1}, state="cancelled")
        charlie = make_member(world.collection, "charlie", Role.ADMIN)
    found = command("funnel", "all", "--csv", tmp_path / "f.csv")
    assert [one["collection"] for one in found["members"]] == names and found["members"][2]["funnel"]["pool"] == 15
    text = (tmp_path / "f.csv").read_text()
    header, *rows, total = (line.split(",") for line in text.splitlines())
    between = ["consensus in round 1", "disagreement after round 1", "consensus in round 2"]
    assert header[3:7] == ["after filtering", *between]
    assert rows[0] == [names[0], "35584", "35579", "20137", "17893", "2244", "1382", "862", "862", "3"]
    assert rows[2][4:] == ["7", "1", "", "", "1", "3"]
    assert total == ["total", "77260", "77245", "31271", "28458", "2813", "", "", "1009", "9"]
    client, here = client_of(charlie), f"/suites/{Suite.objects.get().pk}/"
    assert "31,271" in client.get(here).text and client.get(f"{here}?table=all-funnel&as=csv").text == text


def test_the_command_makes_lists_reports_and_deletes(tmp_path):
    names = [World().collection.name, World().collection.name]
    made = command("make", "both", *names, "--title", "Books & films")
    assert made == {"suite": "both", "title": "Books & films", "members": names}
    assert command("list") == {"suites": [made]}
    files = ["--csv", tmp_path / "t.csv", "--latex", tmp_path / "t.tex"]
    found = command("report", "both", "--measure", "hit", "--k", 2, *files)
    assert [one["collection"] for one in found["members"]] == names and all(one["report"] for one in found["members"])
    first = found["systems"][0]
    values = [value["after"] for value in first["values"].values()]
    assert first["name"] == "one" and first["mean"]["after"] == pytest.approx(sum(values) / 2)
    assert first["tests"]["p"] == 2 / 2**4, "four queries, all one way"
    assert first["tests"]["letters_after"] == "a"
    assert (tmp_path / "t.csv").read_text().startswith("system,")
    assert r"Books \& films: Hit@2" in (tmp_path / "t.tex").read_text()
    command("delete", "both")
    assert not Suite.objects.exists() and "suite both" in command("report", "both")
    assert "nowhere" in command("make", "both", "nowhere")
