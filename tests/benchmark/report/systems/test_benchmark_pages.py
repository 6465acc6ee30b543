"""Pages of the benchmark: what they say of a scene whose figures are known, files to save, and what they refuse."""

import csv
import re
from html import unescape
from io import StringIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import F
from django.http import HttpResponse
from django.test import Client

from annotation.models import AuditEntry, Role
from benchmark.models import Filling, Qrels, Report, Run, Suite
from benchmark.qrels import comparing, reading
from benchmark.qrels.versions import latest_version, original_version
from benchmark.report import reports
from benchmark.templatetags.benchmark import setting
from corpus.models import Collection, Item, Label, Query
from jobs.models import JobState
from judges.models import Campaign, JudgeVersion, Panel
from tests import benchmark_scene as scene
from tests.factories import client_of, make_collection, make_member, make_pair, make_query
from tests.kept_scene import built_once
from tests.rankings import make_next_report
from tests.reading import flat
from tests.site.test_statements import statements as statements

pytestmark = pytest.mark.django_db
HOME = "/c/books/benchmark/"
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def books():
    """Without runs."""
    return bare_scene()


@pytest.fixture
def charlie(books):
    return client_of(make_member(books, "charlie", Role.ADMIN))


@pytest.fixture
def whole():
    """An admin of a collection with everything: six runs, a filling, both reports."""
    return client_of(whole_scene()[1])


whole_scene = built_once(scene.whole_scene)
bare_scene = built_once(scene.collection_of_books)


def import_mine(client: Client, lines: str = "q0 0 d0-1 1\nq1 0 d1-3 0\n", note: str = "ours") -> HttpResponse:
    """A version that judges, unless told otherwise, two queries alone."""
    file = SimpleUploadedFile("mine.txt", lines.encode())
    return client.post(f"{HOME}qrels/", {"file": file, "note": note, "what": "import"})


def text(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status, path
    return response.content.decode()


def upload(*files: tuple[str, str], **more: str) -> dict[str, object]:
    return {"files": [SimpleUploadedFile(name, content.encode()) for name, content in files], **more}


def table(client: Client, path: str) -> list[list[str]]:
    return list(csv.reader(StringIO(client.get(path).content.decode())))


def test_pages_without_a_run_say_what_to_do_next(charlie, books):
    for part in ("", "runs/", "hole-filling/", "report/", "qrels/"):
        page = text(charlie, HOME + part)
        assert "button primary" in page, part
        assert 'class="empty"' in page or part == "hole-filling/", part
    assert 'id="lacks"' in text(charlie, f"{HOME}runs/make/?type=hybrid"), "a hybrid needs a run first"
    assert 'id="lacks"' not in text(charlie, f"{HOME}runs/make/?type=bm25")


def test_the_leaderboard_is_computed_once_and_the_next_step_changes_with_what_was_done(charlie, books):
    """Opening pages computes nothing: the button does, for the ready runs and the newest qrels."""

    def next_step():
        return charlie.get(HOME).context["next"]["key"]

    runs = scene.runs_of(books)
    for part in ("", "runs/", "compare/", "hole-filling/", "report/", "queries/", "qrels/"):
        assert charlie.get(HOME + part).status_code < 400, part
        assert not Qrels.objects.exists() and not Report.objects.exists() and not Filling.objects.exists(), part
    assert charlie.get(HOME).context["board"] is None and charlie.get(HOME).context["state"].is_missing
    response = charlie.post(f"{HOME}compute/", **HTMX)
    assert 'id="board"' in response.text and "<html" not in response.text
    assert len(response.context["board"]["rows"]) == 6
    first = Report.objects.get()
    assert first.before == first.after == latest_version(books) and first.state == JobState.READY
    charlie.post(f"{HOME}compute/")
    assert Report.objects.count() == 1, "stored by runs and qrels"
    assert next_step() == "fill"
    label = Label.objects.create(pair=books.pair_set.first(), grade=1, origin="debate")
    assert next_step() == "labels"
    label.delete()
    scene.filled(books, runs)
    assert charlie.get(HOME).context["state"].is_missing, "the newest qrels are others"
    assert next_step() == "report"
    charlie.post(f"{HOME}compute/")
    charlie.post(f"{HOME}report/make/")
    assert make_next_report()
    assert next_step() == ""
    scene.make_run(books, "late", scene.rankings(1)["dense-large"])
    assert next_step() == "again"
    state = charlie.get(HOME).context["state"]
    assert state.is_missing and state.stored.new == ["late"], "until then the earlier figures are shown"
    charlie.post(f"{HOME}compute/")
    assert len(charlie.get(HOME).context["board"]["rows"]) == 7


def test_a_large_leaderboard_is_left_to_a_worker(charlie, books, monkeypatch):
    monkeypatch.setattr("benchmark.report.leaderboard.AT_ONCE", 10)
    scene.runs_of(books)
    charlie.post(f"{HOME}compute/")
    assert Report.objects.get().state == JobState.WAITING
    page = text(charlie, HOME)
    assert "data-poll" in page and 'hx-trigger="load, submit"' not in page
    assert charlie.get(HOME, **HTMX).status_code == 200
    assert make_next_report()
    assert charlie.get(HOME, **HTMX).status_code == 286, "nothing moves any more: polling ends"


def test_a_collection_without_reference_grades_is_measured_on_its_labels_and_without_any_there_is_no_table():
    stones, home = make_collection("stones"), "/c/stones/benchmark/"
    pair = make_pair(stones)
    scene.make_run(stones, "mine", {pair.query.external_id: [pair.document.external_id]})
    admin = client_of(make_member(stones, "charlie", Role.ADMIN))
    admin.post(f"{home}compute/")
    page = text(admin, home)
    assert 'class="empty"' in page and "<table" not in page and "/hole-filling/" in page
    Label.objects.create(pair=pair, grade=1, origin="people")
    admin.post(f"{home}qrels/", {"what": "labels"})
    admin.post(f"{home}compute/")
    assert latest_version(stones).kind == "labels"
    assert admin.get(home).context["board"]["rows"][0]["value"] == 1


@pytest.fixture
def measured(whole):
    """With its leaderboard on the filled qrels."""
    whole.post(f"{HOME}compute/")
    return whole


def test_the_leaderboard_has_measures_intervals_significance_unjudged_share_and_cost(measured):
    board = measured.get(HOME).context["board"]
    rows = board["rows"]
    assert [row["place"] for row in rows] == sorted(row["place"] for row in rows)
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert rows[0]["best"] is None
    for row in rows[1:]:
        best = row["best"]
        assert best["value"] == pytest.approx(row["value"] - rows[0]["value"])
        assert best["low"] <= best["value"] <= best["high"]
        assert best["p_holm"] >= best["p"]
        assert best["is_significant"] == (not best["low"] <= 0 <= best["high"]), "interval and p are one test"
        shared = set(row["letters"]) & set(rows[0]["letters"])
        assert best["is_significant"] == (not shared), "letters and p are one test"
    assert all(row["values"]["unjudged"] == 0 for row in rows), "the pool to depth 10 is judged whole"
    assert all(row["cost"]["usd"] == 0 for row in rows)
    assert "Holm" in text(measured, HOME)


def test_the_leaderboard_is_sorted_by_any_column_either_way(measured):
    for column in ("ndcg", "recall", "hit", "name", "unjudged", "seconds", "usd"):
        page = measured.get(f"{HOME}?sort={column}")
        names = [row["name"] for row in page.context["board"]["rows"]]
        turned = [row["name"] for row in measured.get(f"{HOME}?sort=-{column}").context["board"]["rows"]]
        assert set(names) == set(scene.SYSTEMS) == set(turned)
        assert page.content.decode().count("aria-sort=") == 1, column
        if column in ("ndcg", "recall"):
            values = [row["values"][column] for row in page.context["board"]["rows"]]
            assert values == sorted(values, reverse=True)
            assert names != turned
    assert [row["name"] for row in measured.get(f"{HOME}?sort=name").context["board"]["rows"]] == sorted(scene.SYSTEMS)
    assert measured.get(f"{HOME}?measure=recall").context["board"]["measure"] == "recall"
    assert measured.get(f"{HOME}?measure=nothing&sort=nothing").context["board"]["measure"] == "ndcg"
    rows = table(measured, f"{HOME}?measure=recall&table=leaderboard&as=csv")
    assert rows[0][:2] == ["system", "Recall@10"] and len(rows) == 7


def test_two_runs_are_compared_query_by_query(measured):
    one, other = (Run.objects.get(name=name) for name in ("dense-large", "bm25"))
    link = unescape(re.findall(r'href="(/c/books/benchmark/compare/[^"]+)"', text(measured, HOME))[0])
    assert 0 <= measured.get(link).context["comparison"]["difference"]["p_holm"] <= 1, "a click from the leaderboard"
    address = f"{HOME}compare/?a={one.pk}&b={other.pk}"
    page = measured.get(address)
    found = page.context["comparison"]
    report = Report.objects.filter(before=F("after")).latest("pk")
    first, second = (reports.query_values(report, run, "ndcg")[1] for run in (one, other))
    difference = first - second
    assert found["difference"]["value"] == pytest.approx(difference.mean())
    counts = found["counts"]
    assert counts["wins"] == (difference > 1e-9).sum() and counts["losses"] == (difference < -1e-9).sum()
    assert sum(counts.values()) == found["queries"] == 20
    moved = [abs(row["difference"]) for row in found["rows"]]
    assert moved == sorted(moved, reverse=True) and len(moved) == 20
    for row in found["rows"]:
        link = f"{HOME}queries/{row['query'].pk}/?run=dense-large&amp;run=bm25"
        assert link in page.content.decode()
    assert found["chart"].svg.count("<rect") == counts["wins"] + counts["losses"], "a bar for each win and loss"
    turned = measured.get(f"{HOME}compare/?a={other.pk}&b={one.pk}").context["comparison"]
    assert turned["difference"]["value"] == -found["difference"]["value"]
    assert turned["difference"]["low"] == -found["difference"]["high"]
    assert turned["difference"]["p_holm"] == found["difference"]["p_holm"]
    wins = measured.get(f"{address}&order=wins&measure=recall").context["comparison"]
    assert wins["measure"] == "recall" and wins["rows"][0]["difference"] >= wins["rows"][-1]["difference"]
    rows = table(measured, f"{address}&table=queries&as=csv")
    assert rows[0] == ["query", "dense-large", "bm25", "difference"] and len(rows) == 21
    assert measured.get(f"{address}&chart=differences&as=svg").status_code == 200
    assert len(table(measured, f"{address}&chart=differences&as=csv")) == 21


def test_two_boxes_ticked_on_the_leaderboard_are_compared_and_one_is_not_enough(measured):
    one, other = (Run.objects.get(name=name).pk for name in ("dense-large", "bm25"))
    found = measured.get(f"{HOME}compare/?run={one}&run={other}").context["comparison"]
    assert (found["first"]["run"], found["second"]["run"]) == (one, other)
    for asked in (f"?run={one}", f"?run={one}&run={one}", f"?a={one}&b=999999", "?a=x&b=", ""):
        page = measured.get(f"{HOME}compare/{asked}")
        assert page.status_code == 200 and page.context["comparison"] is None, asked
        assert ('role="alert"' in page.text) == bool(asked)
    assert measured.get(f"{HOME}compare/?a={one}&b={other}&page={'9' * 5000}").status_code == 200


def test_a_query_without_earlier_qrels_is_no_gain_of_a_system_and_its_holes_are_named_apart(whole):
    """The earlier version judges q0 and q1 alone; by the later one, the other 18 queries have relevant documents."""
    import_mine(whole)
    whole.post(f"{HOME}report/make/", {"one": "3", "other": "2"})
    assert make_next_report()
    report, run = Report.objects.latest("pk"), Run.objects.get(name="dense-large")
    result = report.result
    for system in result["common"]["systems"]:
        value = system["ndcg"]
        assert (value["p_holm"] < 0.05) == (not value["low"] <= 0 <= value["high"]), "one correction for both"
    [(version, named, more)] = whole.get(f"{HOME}report/{report.number}/").context["left_out"]
    assert version.number == 2 and len(named) + more == 18
    assert {query.external_id for query in named} & {"q0", "q1"} == set()
    page = flat(text(whole, f"{HOME}report/{report.number}/"))
    apart = result["holes_in_unjudged_queries"]
    assert 0 < apart < result["holes"]
    assert f"{apart:,} of them" in page
    response = whole.get(f"{HOME}runs/{run.pk}/")
    page, system_page = flat(response.content.decode()), response.context["system"]
    place = next(at for at, one in enumerate(result["systems"]) if one["run"] == run.pk)
    common, everything = result["common"]["systems"][place]["ndcg"], result["systems"][place]["values"]["ndcg"]
    assert f">{common['change']:+.4f}<" in page and f">{everything['change']:+.4f}<" not in page
    changes = table(whole, f"{HOME}runs/{run.pk}/?table=changes&as=csv")[1:]
    assert {row[0] for row in changes} <= {"q0", "q1"}, "a change from no qrels is none"
    assert (system_page.common, system_page.one_sided) == (2, 18) and "18 queries" in page
    holes = system_page.holes
    assert {hole.was_judged for hole in holes if hole.query.external_id not in ("q0", "q1")} == {False}
    assert page.count("query not judged before") == sum(not hole.was_judged for hole in holes) > 0


def test_runs_come_in_by_upload_with_the_instruction_of_their_system(charlie):
    ranked, words = scene.rankings(), "Errors <it> raises."
    files = [(f"{name}.run", scene.trec(ranked[name])) for name in ("bm25", "dense-small")]
    assert charlie.post(f"{HOME}runs/upload/", upload(*files, instruction=words)).status_code == 302
    stored = sorted(Run.objects.values_list("name", "state", "depth", "instruction"))
    assert stored == [("bm25", "ready", 20, words), ("dense-small", "ready", 20, words)]
    assert "2 runs imported (800 lines)" in text(charlie, f"{HOME}runs/")
    assert AuditEntry.objects.get(act="runs.imported").details["runs"] == ["bm25", "dense-small"]
    here = f"{HOME}runs/{Run.objects.get(name='bm25').pk}/"
    assert "Errors &lt;it&gt; raises.</dd>" in text(charlie, here)
    saved = b"".join(charlie.get(f"{here}run.txt")).decode()
    assert [line.split()[2] for line in saved.splitlines()[:20]] == ranked["bm25"]["q0"]
    charlie.post(f"{HOME}runs/upload/", upload(("übung 1.run.gz.txt", "q0 Q0 d0-1 1 2.5 x\n")))
    plain = Run.objects.get(name="bung-1")
    assert "Instruction</dt>" not in text(charlie, f"{HOME}runs/{plain.pk}/")


def test_a_wrong_upload_names_every_line_keeps_the_form_and_changes_nothing(charlie):
    line = "q0 Q0 d0-1 1 2.5 x\n"
    wrong = f"{line}q0 Q0 d0-1 2 2.0 x\nq0 Q0 d0-2 3 nan x\nq0 d0-3 4\nq0 Q0 nowhere 5 1 x\n"
    for files, told in (
        ((("mine.run", wrong),), ("No runs were imported", "ine 2:", "ine 3:", "ine 4:", 'value="mine-2"')),
        ((("a.run", line), ("b.run", line)), ("for one file only",)),
        ((("mine.run", "ARROW1\0\0"),), ("mine.run: this is an Arrow",)),
    ):
        response = charlie.post(f"{HOME}runs/upload/", upload(*files, name="mine-2", instruction="<it>"))
        assert response.status_code == 422 and all(words in response.text for words in told)
        assert "&lt;it&gt;</textarea>" in response.text and "/tmp/" not in response.text
    twice = charlie.post(f"{HOME}runs/upload/", upload(("a.run", line), ("a.txt", line)))
    assert twice.status_code == 422 and "same name" in twice.text
    assert not Run.objects.exists() and not AuditEntry.objects.filter(act="runs.imported").exists()


def test_a_run_is_made_watched_cancelled_and_gone_on_with(charlie):
    form = text(charlie, f"{HOME}runs/make/?type=bm25")
    assert 'name="k1"' in form and 'name="judge"' not in form, "a form has what its kind needs"
    sent = {"name": "mine", "depth": "10", "k1": "1.2", "b": "0.7"}
    response = charlie.post(f"{HOME}runs/make/?type=bm25", sent)
    run = Run.objects.get()
    here = f"{HOME}runs/{run.pk}/"
    assert response["Location"] == here
    assert (run.kind, run.recipe["k1"], run.depth, run.made_by) == ("bm25", 1.2, 10, "charlie")
    assert "data-poll" in text(charlie, here) and charlie.get(f"{HOME}runs/", **HTMX).status_code == 200
    for act, state, polled in (("cancel", JobState.CANCELLED, 286), ("go-on", JobState.WAITING, 200)):
        charlie.post(f"{here}{act}/")
        assert (Run.objects.get().state, charlie.get(here, **HTMX).status_code) == (state, polled)
    refused = charlie.post(f"{HOME}runs/make/?type=bm25", {**sent, "k1": "1.3"})
    assert refused.status_code == 422 and "has a run" in refused.text and 'value="1.3"' in refused.text
    assert "Keep run" in text(charlie, f"{here}delete/") and not Run.objects.get().is_deleted
    charlie.post(f"{here}delete/")
    assert Run.objects.get().is_deleted and here not in text(charlie, f"{HOME}runs/")


def test_the_ranking_uncertainty_names_bounds_and_open_orders(whole):
    page = text(whole, f"{HOME}hole-filling/")
    assert 'id="send"' in page
    rows = table(whole, f"{HOME}hole-filling/?table=safety&as=csv")
    assert rows[0][:5] == ["system", "Judged@10", "nDCG@10", "at least", "at most"]
    assert len(rows) == 7 and all(float(low) <= float(now) <= float(high) for _n, _j, now, low, high, _o in rows[1:])
    assert "\\begin{tabular}" in whole.get(f"{HOME}hole-filling/?table=unsettled&as=tex").content.decode()
    assert whole.get(f"{HOME}hole-filling/?chart=bounds&as=svg")["Content-Type"].startswith("image/svg")
    assert whole.get(f"{HOME}hole-filling/?table=nothing").status_code == 404


def test_pairs_that_could_settle_the_order_go_to_people(charlie, books):
    runs, three = scene.runs_of(books), three_families()
    before = original_version(books)
    reports.ensure_report(books, before, before, runs, 10)
    by_model = {"first": "5", "policy": "single", "panel": "offline", "filter": three[:1]}
    refused = charlie.post(f"{HOME}hole-filling/send/", by_model)
    assert refused.status_code == 422 and "Name three judges" in refused.text
    response = charlie.post(f"{HOME}hole-filling/send/", {"first": "5", "policy": "people"})
    filling = Filling.objects.get()
    assert response["Location"] == f"{HOME}hole-filling/{filling.number}/"
    assert len(filling.pairs) == 5 and Item.objects.filter(reason="hole", state="open").count() == 5
    assert AuditEntry.objects.get(act="filling.started").details["first"] == 5
    first = [(query, document) for query, document, _n in Report.objects.get().result["safety"]["first"][:5]]
    assert {(item.pair.query_id, item.pair.document_id) for item in Item.objects.all()} == set(first)
    facts = facts_of(text(charlie, response["Location"]))
    assert facts == {"Policy": "people judge every pair", "Pairs": "the 5 most informative pairs"}
    charlie.post(f"{HOME}hole-filling/send/", {**by_model, "filter": three})
    assert Filling.objects.latest("pk").options["filter"] == three


def test_a_filling_shows_what_it_comes_to_before_it_begins(charlie, books):
    runs = scene.runs_of(books)
    form = {"runs": [run.name for run in runs], "depth": "10", "policy": "people", "qrels": ""}
    refused = charlie.post(f"{HOME}hole-filling/", {**form, "runs": [], "depth": "7"})
    assert refused.status_code == 422 and 'value="7"' in refused.text, "without a run"
    page = charlie.post(f"{HOME}hole-filling/", form).text
    assert "Start hole filling?" in page and "to judge" in page and not Filling.objects.exists()
    begun = charlie.post(f"{HOME}hole-filling/", {**form, "confirm": "1"})
    here = f"{HOME}hole-filling/{Filling.objects.get().number}/"
    assert begun["Location"] == here and "waiting for people" in text(charlie, here)
    assert charlie.get(here, **HTMX).status_code == 200
    refused = charlie.post(f"{here}finish/", follow=True)
    assert Filling.objects.get().state == "people" and "is resolved yet" in refused.text
    charlie.post(f"{here}cancel/")
    filling = Filling.objects.get()
    assert filling.state == "cancelled" and filling.after is None
    text(charlie, here)


def three_families() -> list[str]:
    """Judges of different makers, and one more of the first one's."""
    for name, family in {"ann": "one", "ben": "two", "cas": "three", "dan": "one"}.items():
        JudgeVersion.objects.create(
            name=name, provider="openai-compatible", model=name, base_url="http://127.0.0.1:9/v1",
            parameters={"family": family}, input_price=0, output_price=0,
        )  # fmt: skip
    return ["ann", "ben", "cas"]


@pytest.mark.slow
def test_a_filling_is_filtered_by_three_judges_of_different_families(charlie, books):
    runs, three = scene.runs_of(books), three_families()
    form = {"runs": [run.name for run in runs], "depth": "10", "policy": "ensemble", "panel": "offline", "qrels": ""}
    for wrong, said in ((["ann", "ben"], "Name three judges"), (["ann", "ben", "dan"], "are from one family")):
        refused = charlie.post(f"{HOME}hole-filling/", {**form, "filter": wrong})
        assert refused.status_code == 422 and said in refused.text
        assert re.findall(r'name="filter" value="(\w+)"[^>]*checked', refused.text) == wrong, "what was ticked stays"
    people = charlie.post(f"{HOME}hole-filling/", {**form, "policy": "people", "filter": three})
    assert people.status_code == 422 and "no model is used" in people.text and not Filling.objects.exists()

    without = calls_of(charlie.post(f"{HOME}hole-filling/", form).text)
    asked = charlie.post(f"{HOME}hole-filling/", {**form, "filter": three}).text
    assert "ann, ben, cas" in asked and calls_of(asked) > without, "calls of the filter count"
    hidden = re.findall(r'<input type="hidden" name="filter" value="(\w+)">', asked)
    assert hidden == three
    charlie.post(f"{HOME}hole-filling/", {**form, "filter": hidden, "confirm": "1"})
    filling = Filling.objects.get()
    judges = JudgeVersion.objects.filter(name__in=three).order_by("name").values_list("pk", flat=True)
    assert filling.options["filter"] == three
    assert Campaign.objects.get(pk=filling.campaign).protocol["filter"] == list(judges)
    facts = facts_of(text(charlie, f"{HOME}hole-filling/{filling.number}/"))
    assert (facts["Policy"], facts["Panel"], facts["Filter"]) == ("ensemble", "offline", "ann, ben, cas")
    assert facts["Judges"].split(", ") == Panel.objects.get(name="offline").ensemble and "Debaters" not in facts
    Filling.objects.update(campaign=None)
    facts = facts_of(text(charlie, f"{HOME}hole-filling/{filling.number}/"))
    assert facts["Filter"] == "ann, ben, cas", "before it is prepared"


def facts_of(page: str) -> dict[str, str]:
    """What a page lists as terms with their values."""
    return dict(re.findall(r"<dt>\s*([^<]+?)\s*</dt>\s*<dd>\s*([^<]*?)\s*</dd>", page))


def calls_of(page: str) -> int:
    """How many calls an estimate expects at most."""
    found = re.search(r"calls \(estimate; at most ([\d,]+)\)", page)
    assert found
    return int(found[1].replace(",", ""))


def test_calls_and_cost_are_shown_before_a_model_is_asked(charlie, books):
    form = {"name": "hyde", "depth": "10", "method": "hyde", "judge": "offline-rewriter"}
    page = charlie.post(f"{HOME}runs/make/?type=rewrite", form).text
    assert "Create this run?" in page and calls_of(page) > 0 and not Run.objects.exists()
    response = charlie.post(f"{HOME}runs/make/?type=rewrite", {**form, "confirm": "1"})
    run = Run.objects.get()
    assert response["Location"] == f"{HOME}runs/{run.pk}/" and run.recipe["method"] == "hyde"


def test_the_report_shows_before_after_and_every_file(whole):
    report = Report.objects.latest("pk")
    address = f"{HOME}report/{report.number}/"
    page = text(whole, address)
    assert "Kendall" in page and "saturated" in page
    system = {one["name"]: one["values"]["ndcg"] for one in report.result["systems"]}
    shifts = {name: (one["rank_before"], one["rank_after"]) for name, one in system.items()}
    assert shifts["dense-large"][1] < shifts["dense-large"][0], "what the qrels did not know was underrated"
    rows = table(whole, f"{address}?table=changes-ndcg&as=csv")
    assert {row[0] for row in rows[1:]} == set(scene.SYSTEMS)
    latex = whole.get(f"{address}?measure=recall&table=changes-recall&as=tex").content.decode()
    assert r"\toprule" in latex and "dense-large" in latex
    assert "Recall@10 by system" in text(whole, f"{address}?measure=recall")
    assert whole.get(address).context["shown"]["recall"] in flat(unescape(page))


def test_a_report_of_other_versions_and_depths_is_asked_for_on_the_page(whole):
    runs = list(Run.objects.order_by("pk").values_list("name", flat=True))
    given = {"before": 1, "after": 2, "k": "5", "runs": runs[:3]}
    response = whole.post(f"{HOME}report/make/", given)
    report = Report.objects.latest("pk")
    assert response["Location"] == f"{HOME}report/{report.number}/" and report.options["k"] == 5
    assert "aspects_k" not in report.options and "Computing" in text(whole, response["Location"])
    whole.post(f"{HOME}report/make/", {**given, "aspects_k": "10"})
    assert Report.objects.latest("pk").options["aspects_k"] == 10
    deep = whole.post(f"{HOME}report/make/", {**given, "k": "500"})
    assert deep.status_code == 422 and list(deep.context["form"].errors) == ["__all__"] and 'value="500"' in deep.text


def test_a_system_measured_with_one_version_has_values_with_intervals_and_no_change(measured):
    Report.objects.exclude(after=F("before")).update(state=JobState.CANCELLED)
    run = Run.objects.get(name="dense-large")
    address = f"{HOME}runs/{run.pk}/"
    page = flat(text(measured, address))
    part = page[page.index('id="values-h"') : page.index('id="facts-h"')]
    assert re.findall(r'<th scope="col"[^>]*>([^<]+)', part) == ["Measure", "Value", "95% interval", "Rank"]
    result = Report.objects.latest("pk").result
    place = [one["run"] for one in result["systems"]].index(run.pk)
    low, high = result["intervals"]["ndcg"][place]
    value = result["systems"][place]["values"]["ndcg"]["after"]
    assert low < value < high and f">{value:.4f}<" in part and f">{low:.4f} to {high:.4f}<" in part
    rows = {row[0]: row[1:] for row in table(measured, f"{address}?table=values&as=csv")}
    assert rows["measure"] == ["value", "95% from", "95% to", "rank"]
    assert [float(one) for one in rows["nDCG@10"][:3]] == [value, low, high]


def test_every_table_of_a_system_can_be_saved_whole(whole):
    run = Run.objects.get(name="dense-large")
    run.instruction = "Cite 100% & more."
    run.save()
    address = f"{HOME}runs/{run.pk}/"
    page = text(whole, address)
    report = Report.objects.latest("pk")
    value = next(one for one in report.result["systems"] if one["run"] == run.pk)["values"]
    for key in ("values", "changes", "holes", "cost"):
        assert f'href="?table={key}&amp;as=csv"' in page and f'href="?table={key}&amp;as=tex"' in page, key
    rows = {row[0]: row[1:] for row in table(whole, f"{address}?table=values&as=csv")}
    assert rows["measure"][:3] == ["before", "after", "change"]
    assert [float(one) for one in rows["nDCG@10"][:2]] == [value["ndcg"]["before"], value["ndcg"]["after"]]
    assert rows["Hole@10"][0] == "", "Hole has no before"
    _before, after = reports.query_values(report, run, "hole")
    holes = table(whole, f"{address}?table=holes&as=csv")[1:]
    assert len(holes) == round(sum(after) * 10) > 30, "the page names thirty, the file all"
    truth = scene.truth()
    assert all(document in truth[query] and not scene.lexical(document) for query, document, *_rest in holes)
    ranked = scene.rankings()[run.name]
    assert [int(row[-2]) - 1 for row in holes] == [ranked[row[0]].index(row[1]) for row in holes]
    shares = dict(zip(Query.objects.in_bulk(report.result["queries"]).values(), after, strict=True))
    most = sorted(shares, key=lambda query: (-shares[query], report.result["queries"].index(query.pk)))
    assert list(dict.fromkeys(row[0] for row in holes)) == [one.external_id for one in most if shares[one]]
    before, after = reports.query_values(report, run, "ndcg")
    changed = [abs(one - other) for one, other in zip(before, after, strict=True) if abs(one - other) > 1e-9]
    moved = [abs(float(row[-1])) for row in table(whole, f"{address}?table=changes&as=csv")[1:]]
    assert moved == pytest.approx(sorted(changed, reverse=True))
    cost = dict(row for row in table(whole, f"{address}?table=cost&as=csv"))
    assert (cost["queries"], cost["calls"], cost["instruction"]) == ("20", "0", "Cite 100% & more.")
    assert r"Cite 100\% \& more." in whole.get(f"{address}?table=cost&as=tex").content.decode()
    assert whole.get(f"{address}?table=nothing").status_code == 404
    unknown = scene.make_run(run.collection, "unknown", {})  # no report has it: it saves what it took
    assert table(whole, f"{HOME}runs/{unknown.pk}/?table=cost&as=csv")[0] == ["what", "value"]
    assert whole.get(f"{HOME}runs/{unknown.pk}/?table=values").status_code == 404


def test_a_query_shows_what_each_system_returned_and_what_it_is(whole):
    queries, documents = scene.by_id(Collection.objects.get(name="books"))
    here = f"{HOME}queries/{queries['q3'].pk}/"
    response = whole.get(here)
    page, counts = flat(response.text), response.context["side"]["counts"]
    ranked, truth = scene.rankings(), scene.truth()["q3"]
    returned = {document for found in ranked.values() for document in found["q3"][:10]}
    relevant = returned & truth
    holes = {one for one in relevant if not scene.lexical(one)}
    assert counts["hole"] == len(holes) and f" {len(holes)}</span>" in page
    assert f">relevant {len(relevant) - len(holes)}</span>" in page
    assert ">unjudged 0</span>" in page, "the pool to depth 10 is judged whole"
    asked = "?k=20&run=bm25&run=dense-large"
    deeper = flat(text(whole, here + asked))
    assert ">unjudged 0</span>" not in deeper and "reranked</a></th>" not in deeper
    rows = table(whole, f"{here}{asked}&table=returned&as=csv")
    assert rows[0] == ["rank", "bm25", "bm25: state", "dense-large", "dense-large: state"] and len(rows) == 21
    assert [[row[1], row[3]] for row in rows[1:]] == [
        list(both) for both in zip(ranked["bm25"]["q3"], ranked["dense-large"]["q3"], strict=True)
    ]
    for _rank, _document, _state, document, state in rows[1:11]:
        expected = ("relevant" if scene.lexical(document) else "hole") if document in truth else "not relevant"
        assert state == expected, document
    for headers in ({}, HTMX):
        page = whole.get(f"{here}{documents['d3-1'].pk}/", **headers).text
        assert documents["d3-1"].text[:40] in page and ("<html" in page) == (not headers)


def test_instructions_and_excluded_documents_stand_where_they_exist(charlie, books):
    queries, _documents = scene.by_id(books)
    queries["q1"].metadata, queries["q1"].instruction = {"excluded_ids": ["d1-7"]}, "Errors raised."
    queries["q1"].save()
    scene.runs_of(books)
    page = text(charlie, f"{HOME}queries/{queries['q1'].pk}/")
    assert "d1-7</code>" in page and "Errors raised." in page
    assert "Task instruction" in text(charlie, f"{HOME}queries/{queries['q2'].pk}/")


def test_the_whole_list_of_queries_can_be_saved_as_it_was_asked_for(whole):
    collection = Collection.objects.get(name="books")
    for n in range(40):
        make_query(collection, f"More about slices, {n}?", external_id=f"more-{n}", answers=[])
    page = text(whole, f"{HOME}queries/?words=s&order=judged")
    assert page.count('<tr><th scope="row"') == 50 and "words=s&amp;order=judged&amp;table=queries&amp;as=tex" in page
    rows = table(whole, f"{HOME}queries/?words=s&order=judged&page=2&table=queries&as=csv")
    assert rows[0] == ["query", "text", "judged", "relevant", "holes found"]
    assert len(rows) == 61, "forty and twenty: the page shows fifty of them"
    one, two = Qrels.objects.order_by("number")
    assert sum(int(row[2]) for row in rows[1:]) == two.counts["judged"]
    assert sum(int(row[4]) for row in rows[1:]) == two.counts["relevant"] - one.counts["relevant"]
    assert len(table(whole, f"{HOME}queries/?words=closures&table=queries&as=csv")) == 2
    assert "No matching queries" in text(whole, f"{HOME}queries/?words=zebra%25")


def test_lists_of_runs_fillings_and_versions_can_be_saved(whole):
    runs, fillings, listed = (
        table(whole, f"{HOME}{part}/?table={name}&as=csv")
        for part, name in (("runs", "runs"), ("hole-filling", "fillings"), ("qrels", "versions"))
    )
    assert {row[0] for row in runs[1:]} == set(scene.SYSTEMS) and runs[1][-2] == "20"
    assert fillings[1][-2:] == ["1", "2"] and fillings[1][2] == "filled"
    two = Qrels.objects.get(number=2).counts
    last = dict(zip(listed[0], listed[2], strict=True))
    assert (last["judged"], last["people"]) == (str(two["judged"]), str(two["origins"]["people"]))


def test_measure_both_measures_the_two_versions_that_are_shown(whole):
    assert import_mine(whole).status_code == 302 and Qrels.objects.latest("pk").counts["judged"] == 2
    refused = import_mine(whole, "q0 0 d0-1 1\nq1 0 nowhere 0\n", "kept words")
    assert refused.status_code == 422 and "/tmp/" not in refused.text
    assert "line 2" in refused.text and "kept words" in refused.text
    page = flat(text(whole, f"{HOME}qrels/diff/?one=3&other=2"))
    form = f'action="{HOME}report/make/"'
    assert form in page
    given = dict(re.findall(r'<input type="hidden" name="(one|other)"\s+value="(\d+)"\s*>', page))
    assert given == {"one": "3", "other": "2"}
    earlier = Report.objects.latest("pk")
    response = whole.post(f"{HOME}report/make/", given)
    report = Report.objects.latest("pk")
    assert (report.before.number, report.after.number) == (3, 2)
    assert response["Location"] == f"{HOME}report/{report.number}/"
    assert make_next_report()
    note = "Ranks, values, intervals and p below use 2 common queries."
    page = text(whole, response["Location"])
    assert note in page and note not in text(whole, f"{HOME}report/{earlier.number}/")
    assert re.search(r"\b1 (pairs|systems) (of|change)", page) is None
    assert form not in text(whole, f"{HOME}qrels/diff/?one=2&other=2")
    assert whole.post(f"{HOME}report/make/", {"one": "3", "other": "9"}).status_code == 404


def test_versions_of_the_qrels_are_listed_compared_and_saved(whole):
    page, diff = flat(text(whole, f"{HOME}qrels/")), f"{HOME}qrels/diff/?one=1&other="
    assert "1, original" in page and "2, filled" in page
    one, two = Qrels.objects.order_by("number")
    counts = comparing.diff_versions(one, two).counts
    assert f"{counts['added']:,}" in text(whole, f"{diff}2") and counts["removed"] == counts["changed"] == 0
    rows = table(whole, f"{diff}2&table=diff&as=csv")
    assert len(rows) == 1 + counts["added"] and rows[1][0] == "added" and rows[1][-1] == "people"
    assert whole.get(f"{diff}x").status_code == 404
    lines = b"".join(whole.get(f"{HOME}qrels/2.txt")).decode().splitlines()
    assert len(lines) == two.counts["judged"]


def test_a_suite_is_for_who_may_admin_every_member(whole):
    make_member(make_collection("stones"), "charlie", Role.ADMIN)
    made = whole.post("/suites/", {"name": "both", "title": "Both", "members": ["books", "stones"]})
    here = f"/suites/{Suite.objects.get().pk}/"
    assert made["Location"] == here
    page = text(whole, here)
    assert "dense-large" in page and "missing" in page
    assert table(whole, f"{here}?table=both-ndcg&as=csv")[0][0] == "system"
    bob = client_of(make_member(Collection.objects.get(name="books"), "bob", Role.ADMIN))
    assert bob.get(here).status_code == 404 and "Both" not in text(bob, "/suites/")
    assert bob.post(f"{here}delete/").status_code == 404
    assert bob.post("/suites/", {"name": "mine", "members": ["stones"]}).status_code == 422
    whole.post(f"{here}delete/")
    assert not Suite.objects.exists()


def test_runs_and_reports_of_another_collection_are_not_found(whole):
    make_collection("stones")
    make_member(Collection.objects.get(name="stones"), "charlie", Role.ADMIN)
    run, report, filling = Run.objects.first(), Report.objects.latest("pk"), Filling.objects.get()
    assert run is not None
    for part in (f"runs/{run.pk}/", f"report/{report.number}/", f"hole-filling/{filling.number}/",
                 f"runs/{run.pk}/run.txt", "qrels/1.txt", "qrels/diff/?one=1&other=2"):  # fmt: skip
        assert whole.get(f"/c/stones/benchmark/{part}").status_code == 404, part


def test_p_mrr_of_two_runs_stands_on_the_report(whole):
    one, two = Run.objects.filter(name__in=["bm25", "dense-large"]).order_by("name")
    report = Report.objects.latest("pk")
    address = f"{HOME}report/{report.number}/?original={one.pk}&changed={two.pk}"
    context = whole.get(address).context
    assert context["following"] is None and "became irrelevant" in str(context["follow"].errors)
    kept = report.before
    rows = reading.load_named(kept)
    import_mine(whole, "".join(f"{query} 0 {document} 0\n" for query, found in rows.items() for document in found))
    other = Qrels.objects.latest("number")
    report = reports.ensure_report(report.collection, kept, other, [one, two], 10)
    response = whole.get(f"{HOME}report/{report.number}/?original={one.pk}&changed={two.pk}")
    following = response.context["following"]
    assert "p-MRR is <strong>" in response.text and (following["queries"], following["documents"]) == (20, 80)


def test_no_page_of_a_full_benchmark_costs_more_than_twenty_statements(measured, statements):
    report, filling, run = Report.objects.latest("pk"), Filling.objects.get(), Run.objects.get(name="dense-large")
    queries, documents = scene.by_id(run.collection)
    query, other = f"queries/{queries['q3'].pk}/", Run.objects.get(name="bm25")
    pages = ["", "runs/", "runs/make/?type=hybrid", f"runs/{run.pk}/", f"runs/{run.pk}/delete/", "hole-filling/",
             f"hole-filling/{filling.number}/", "report/", f"report/{report.number}/",
             f"compare/?a={run.pk}&b={other.pk}",
             "queries/", query, f"{query}{documents['d3-1'].pk}/", "qrels/", "qrels/diff/?one=1&other=2"]  # fmt: skip
    dear = {}
    for part in pages:
        statements.clear()
        text(measured, HOME + part)
        if len(statements) > 20:
            dear[part] = len(statements)
    assert dear == {}


def test_a_value_of_a_recipe_is_printed_without_brackets():
    assert setting({"kind": "bm25", "k1": 0.9}) == "kind: bm25, k1: 0.9"
    assert setting([{"run": 1}, "bm25"]) == "run: 1; bm25" and setting(5) == 5
