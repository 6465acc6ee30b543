"""The audit log holds every act of the walk: each address that takes a POST is in a table below (check 17)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils import timezone

from annotation.access.audit_log.recording import ACTS
from annotation.models import Assignment, AuditEntry
from annotation.models.quality_control import GoldSet, JudgmentExclusion
from benchmark.models import Run
from corpus.models import Item
from judges.models import Campaign
from tests.factories import make_item, make_pair
from tests.site.test_permissions import Route, World, hidden_evidence, routes

pytestmark = pytest.mark.django_db
OFFLINE = ["offline-answers", "offline-bm25", "offline-tfidf", "offline-coverage", "offline-ngrams"]
SECRET = "a long enough secret"
IN_TWO_DAYS = f"{timezone.localdate() + timedelta(2):%Y-%m-%d}"
"""Not today: a run goes on over midnight."""


@dataclass(frozen=True)
class Act:
    """What somebody sends to an address, and the line that it leaves."""

    act: str
    who: str = "admin"
    data: dict[str, Any] = field(default_factory=dict)
    path: str | Callable[[World], str] = ""
    """Where the walk's own filling of the address would do nothing; {0} is the world."""


def upload(name: str, text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def waiting_run(world: World) -> Run:
    """A run that nobody has begun to make."""
    return Run.objects.create(collection=world.collection, name="slow", kind="bm25", depth=10)


def ended_campaign(world: World) -> Campaign:
    """A campaign from which more audits may be drawn."""
    return Campaign.objects.create(collection=world.collection, policy="debate", panel="offline", state="finished")


def flag_of(world: World) -> str:
    """The address of a flag, for its answers."""
    item, at = make_item(make_pair(world.collection)), timezone.now()
    flag = Assignment.objects.create(
        item=item, membership=world.bystander, state="done", flagged=True, lease_until=at, ended_at=at
    )
    return f"/c/birds/threads/{flag.item_id}/{flag.public_id}/"


LEFT: dict[str, Act] = {
    "new_collection": Act("collection.made", "owner", {"name": "fish", "title": "Fish", "grades": "1"}),
    "control_import": Act("import.files", path="/c/birds/import/{0.file_import.number}/start/"),
    "settings": Act(
        "settings.changed",
        data={"title": "New", "overlap": 2, "order": "random", "lease_minutes": 20, "relevant_from": 1},
    ),
    "instruction": Act("settings.instruction", data={"text": "What counts.", "base": "0"}),
    "guidelines_editor": Act("settings.guidelines", data={"text": "How to judge.", "base": "0"}),
    "cost_settings": Act("settings.changed", data={"budget": "5"}),
    "price": Act("price.changed", data={"input_price": "1", "output_price": "2", "confirm": "1"}),
    "set_member_role": Act("member.role", data={"role": "2"}),
    "set_member_limits": Act("member.limits", data={"daily_quota": "5"}),
    "set_member_active": Act("member.active", data={"active": "0"}),
    "make_member_password_link": Act("password.link"),
    "invite_members": Act("invitation.made", data={"people": "Dana"}),
    "make_reusable_link": Act(
        "invitation.made", data={"link-role": "annotator", "link-limit": "9", "link-last_day": IN_TWO_DAYS}
    ),
    "join_as_owner": Act("member.joined", "owner"),
    "revoke_invitation": Act("invitation.revoked"),
    "invitation": Act("invitation.accepted", "stranger"),
    "start_campaign": Act(
        "campaign.started", data={"panel": "offline", "policy": "debate", "rounds": "2", "confirm": "1"}
    ),
    "write_evidence": Act("evidence.started", data={"write-writer": "offline-writer", "confirm": "1"}),
    "control_campaign": Act("campaign.control"),
    "undo_bulk_act": Act("pairs.undone"),
    "act_on_pair": Act("pairs.sent", data={"kind": "send"}),
    "write_note": Act("pairs.noted", data={"text": "Look again."}),
    "hand_over_skipped": Act("skipped.handed-over"),
    "audit_draw": Act(
        "audit.drawn",
        data={"route": "r1.m0.y", "up_to": "1"},
        path=lambda world: f"/c/birds/audits/{ended_campaign(world).number}/draw/",
    ),
    "audit_to_people": Act("audit.to-people", data={"route": "r1.m0.y"}),
    "audit_go_on": Act("audit.go-on", data={"route": "r1.m0.y"}),
    "compare_policies": Act("policies.compared"),
    "recompute": Act("statistics.asked"),
    "measure_agreement": Act("statistics.asked"),
    "make_export": Act("export.made", data={"format": "csv"}),
    "use_panel": Act("panel.used", data={"judge": OFFLINE}),
    "self_check": Act("judge.self-check", data={"judge": OFFLINE[:1]}),
    "ask_canaries": Act("canaries.asked", data={"judges": "free"}),
    "add_model": Act("judge.added", "owner", {"provider": "openai", "model": "gpt-4o-mini"}),
    "make_backup": Act("backup.asked", "owner"),
    "schedule_canaries": Act("canaries.schedule", data={"judges": "free", "hours": "24"}),
    "apply_preset": Act("settings.changed", data={"preset": "dream"}),
    "arm_settings": Act("settings.changed", data={"shown": "1", "hidden": "1", "reveal": "1"}),
    "start_training": Act("training.started"),
    "control_job": Act("training.control", path="/c/birds/training/jobs/{0.job.number}/cancel/"),
    "start_curve": Act("training.started"),
    "control_curve": Act("training.control", path="/c/birds/training/curves/{0.curve.number}/cancel/"),
    "use_model": Act("training.control", path="/c/birds/training/models/{0.model.pk}/rerank/"),
    "import_query_log": Act("import.queries"),
    "upload_runs": Act("runs.imported"),
    "make_run": Act("run.started", data={"name": "mine", "depth": "10", "k1": "1.5", "b": "0.75"}),
    "control_run": Act("run.control", path=lambda world: f"/c/birds/benchmark/runs/{waiting_run(world).pk}/cancel/"),
    "delete_run": Act("run.control"),
    "make_report": Act("report.asked"),
    "compute_leaderboard": Act("report.asked"),
    "hole_fillings": Act("filling.started", data={"depth": "10", "policy": "people", "confirm": "1"}),
    "control_filling": Act("filling.ended", path="/c/birds/benchmark/hole-filling/{0.filling.number}/cancel/"),
    "start_agents": Act(
        "agents.started",
        data={"retrievers": ["bm25"], "agents": ["offline-rewriter"], "protocol": "adaptive", "confirm": "1"},
    ),
    "control_agents": Act("agents.control", path="/c/birds/benchmark/agents/{0.agent_job.number}/cancel/"),
    "find_label_errors": Act("statistics.asked"),
    "syntheses": Act("synthesis.started", data={"judge": "offline-rewriter", "limit": "1", "confirm": "1"}),
    "control_synthesis": Act("synthesis.control", path="/c/birds/benchmark/synthesis/{0.synthesis.number}/cancel/"),
    "comparisons": Act(
        "comparisons.drawn",
        data={"documents": "pool", "per_query": 2, "opponents": 1, "people": 1, "seed": 0, "confirm": "1"},
    ),
    "control_comparisons": Act("comparisons.control", path="/c/birds/comparisons/{0.judging.set.number}/pause/"),
    "start_comparison_judging": Act(
        "comparisons.judges", data={"set": "1", "judges": ["offline-bm25"], "confirm": "1"}
    ),
    "control_comparison_judging": Act(
        "comparisons.judges-control", path="/c/birds/comparisons/judges/{0.judging.number}/cancel/"
    ),
    "web_searches": Act("import.web", data={"judge": "offline-web-search", "limit": "1", "confirm": "1"}),
    "control_web_search": Act("import.web-control", path="/c/birds/import/web/{0.web_search.number}/cancel/"),
    "start_by_hand": Act("pairs.sent"),
    "qrels": Act("qrels.made", data={"what": "original"}),
    "suites": Act("suite.made", "owner", {"name": "two", "members": ["birds"]}),
    "control_suite": Act("suite.deleted", "owner", path="/suites/{0.suite.pk}/delete/"),
    "answer_thread": Act("thread.answered", "adjudicator", {"text": "Seen."}, flag_of),
    "adjudicate_submit": Act("conflict.settled", "adjudicator"),
    "aspects_act": Act(
        "aspects.revised",
        "adjudicator",
        {"text": "How fast it flows", "rationale": "A part of the need.", "importance": "3"},
        "/c/birds/aspects/{0.pair.query_id}/add/",
    ),
    "aspects_export": Act("aspects.exported", "adjudicator"),
    "quality_control": Act(
        "settings.changed",
        data={"checks": "0.1", "repeats": "0.05", "batch": "20", "qualification": "", "pass_mark": "90"},
    ),
    "withdraw_checks": Act("checks.withdrawn"),
    "write_consent": Act("consent.written", data={"text": "What you judge is kept."}),
    "pause_member": Act("member.paused"),
    "exclude_judgments": Act("judgments.aside"),
    "person_qualification": Act("qualification.passed", data={"pass": "1"}),
    "person_expert": Act("member.expert", data={"on": "1"}),
    "gold": Act("gold.made", data={"size": "1", "seed": "0", "spot": "0.2"}),
    "password_link": Act("password.link", "owner"),
    "control_person": Act("account.stopped", "owner", path="/people/{0.bystander.user.pk}/stop/"),
    "share_links": Act("share.made", data={"page": "overview", "days": "30"}),
    "revoke_share_link": Act("share.revoked"),
    "webhooks": Act("webhook.made", data={"url": "https://ice.example/new", "events": ["export.ready"]}),
    "webhook": Act("webhook.changed", data={"url": "https://ice.example/other", "events": ["task.resolved"]}),
    "control_webhook": Act("webhook.tested", path="/c/birds/webhooks/{0.webhook.number}/test/"),
    "replay_webhook": Act("webhook.replayed"),
    "export_audit_log": Act("audit.exported", data={"format": "csv"}),
    "export_site_audit_log": Act("audit.exported", "owner", {"format": "jsonl"}),
    "account_login": Act("session.in", "visitor", {"login": "bystander", "password": "bystander-password"}),
    "account_logout": Act("session.out"),
    "account_change_password": Act(
        "password.changed", data={"oldpassword": "admin-password", "password1": SECRET, "password2": SECRET}
    ),
    "account_reset_password": Act("password.asked", "visitor", {"email": "nobody@example.org"}),
    "inbox_mail": Act("account.inbox-mail", data={"inbox_mail": "daily"}),
    "mail_address": Act("account.mail", data={"email": "admin@example.org", "password": "admin-password"}),
    "end_other_sessions": Act("session.ended"),
}
"""Addresses whose POST is an act, with what it takes for it to be one."""

ELSEWHERE = {
    "push_export", "push_model", "hub_token", "model", "control_model", "download_backup", "delete_backup",
    "import_synthesis", "query_lists", "delete_query_list", "tokens",
    "revoke_token", "control_study", "write_study_answer", "rate_study_answers",
    "aspect_review_claim", "aspect_review", "aspect_review_undo", "aspect_review_release",
    "compare_losses", "start_answers", "control_answers", "run_bulk_act", "write_arguments",
    "load_judges_file", "test_model", "choose_members", "make_checks", "make_qualification",
    "reinstate_judgments", "gold_end", "new_study", "stop_study", "aspects_cut", "aspects_draft",
    "aspects_sample", "send_pairs", "decide_gate", "decide_gate_again", "judge_deciding", "add_search_endpoint",
    "search_endpoint", "test_search_endpoint", "delete_search_endpoint",
    "judge_outputs", "adjudicate_undo", "end_session",
    "account_reset_password_from_key", "mfa_authenticate", "mfa_activate_totp",
    "mfa_deactivate_totp", "mfa_generate_recovery_codes", "provider_disconnect",
    "openid_connect_login", "invitation_provider", "first_owner", "upload_explanations",
}  # fmt: skip
"""Acts that take several steps: tests of their own take them and look into the log."""

NO_ACT = {
    "bulk_acts": "plans an act on selected pairs; carrying it out is told",
    **dict.fromkeys(("save_view", "change_view", "set_columns"), "a view of the table of pairs, for oneself"),
    "import": "uploads files and looks at them; starting the import is told",
    "file_import": "says what the files hold; starting the import is told",
    "create_upload": "begins an upload; starting the import is told",
    "delete_upload": "deletes a file of one's own that nothing uses; starting an import is told",
    "cancel_label_errors": "ends a search that changes no label",
    "preview_export": "shows what an export would hold; nothing is written",
    "account_signup": "closed: it makes nothing",
    **dict.fromkeys(
        ("account_inactive", "account_reset_password_done", "account_reset_password_from_key_done"), "a page"
    ),
    "account_reauthenticate": "asks the password again, changes nothing",
    "mfa_reauthenticate": "asks a code again, changes nothing",
    "mfa_download_recovery_codes": "one's own codes, after the password was asked again",
    "display": "how pages look, to oneself",
    **dict.fromkeys(("inbox_seen", "replies_seen"), "what one has read, for oneself"),
    "unsent_form": "forgets what the reader sent in vain, in their own session",
    "aspects_upload": "a draft of one's own; storing it is told",
    "aspects_again": "asks anew for the address whose fetching is told",
    "aspects_dismiss": "throws a draft of one's own away",
    "aspects_second": "a second person's weights: kept in a table of their own, append-only",
    **dict.fromkeys(("grade_gold", "gold_review"), "what experts and seniors say: append-only rows of their own"),
    "compare_next": "assigns comparisons to oneself: leases, as of judging",
    "compare_answer": "what somebody prefers: append-only rows of their own, with everybody's name",
    "compare_undo": "withdraws one's own answer: an append-only row more",
    "judge_consent": "kept in a table of its own, append-only",
    **dict.fromkeys(("judge_returned", "judge_guidelines"), "that somebody read of it: kept with the membership"),
}
"""Addresses that take a POST and do nothing that somebody else could mind."""

HISTORY = "judge_"
"""Judging leaves judgments, drafts and leases: append-only rows of their own, with everybody's name."""


class Walk:
    """The world of the walk with what acts need in it."""

    def __init__(self, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.world = world = World()
        self.words = ""
        hidden_evidence(world)
        settings.VAR = tmp_path
        settings.EMAIL_HOST = "127.0.0.1"
        self.conflict = make_item(make_pair(world.collection), state=Item.State.CONFLICT)
        for _ in range(6):  # a gold sample draws one pair beside five for practice
            make_pair(world.collection)
        make_pair(world.collection, world.pair.query)  # two documents of a query, to compare
        monkeypatch.setattr("jobs.workers.live_workers", lambda *_: ["one"])
        monkeypatch.setattr("training.jobs.services.lifecycle.begin_training", lambda **given: world.job)
        monkeypatch.setattr("training.jobs.forms.TrainForm.is_valid", _fine)
        monkeypatch.setattr("training.jobs.services.read_request", lambda *given: {})
        monkeypatch.setattr("training.curves.services.read_request", lambda *given: {})
        monkeypatch.setattr("training.curves.services.begin_curve", lambda **given: world.curve)
        world.job.options["options"] = {}
        world.job.save()
        world.model.job.options = {**world.job.options, "data": "/nowhere", "base": "tiny:qwen3"}
        world.model.job.save()

    def data(self, name: str) -> dict[str, Any]:
        """What is sent; files anew each time."""
        if name == "import_query_log":
            return {"log": upload("log.csv", "query,count\nboots,7\n"), "by": "uniform", "seed": 0}
        if name == "upload_runs":
            query, document = self.world.pair.query.external_id, self.world.pair.document.external_id
            return {"files": upload("mine.run", f"{query} Q0 {document} 1 2.5 mine\n")}
        if name == "hole_fillings":
            picked = {"runs": [self.world.run.name], "qrels": self.world.qrels.number}
            return {**LEFT[name].data, **picked}
        if name == "adjudicate_submit":
            return {"item": self.conflict.pk, "grade": 1}
        return LEFT[name].data

    def told(self, route: Route) -> list[AuditEntry]:
        """The lines that the act of this address leaves; what it did is taken back."""
        wanted = LEFT[route.name]
        client = self.world.client(wanted.who)
        with transaction.atomic():
            before = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            path = wanted.path(self.world) if callable(wanted.path) else wanted.path.format(self.world)
            client.post(path or route.path, self.data(route.name))
            self.words += str(list(AuditEntry.objects.filter(pk__gt=before).values()))
            found = list(AuditEntry.objects.filter(pk__gt=before, act=wanted.act))
            transaction.set_rollback(True)
        return found


def _fine(form: Any) -> bool:
    given = {"data": "/nowhere", "recipe": "prism", "base": "tiny:qwen3"}
    form.options = form.record.read(given | ({"points": "1,2"} if "points" in form.fields else {}))
    return True


@pytest.fixture
def walk(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Walk:
    return Walk(settings, monkeypatch, tmp_path)


def test_every_address_that_takes_a_post_is_in_a_table(walk: Walk) -> None:
    known = LEFT.keys() | ELSEWHERE | NO_ACT.keys()
    left_out = []
    for route in routes(walk.world):
        if route.action is None or route.name in known or route.name.startswith(HISTORY):
            continue
        who = {"adjudicate": "adjudicator", "judge": "annotator"}.get(route.action, "owner")
        with transaction.atomic():
            status = walk.world.client(who).post(route.path).status_code
            transaction.set_rollback(True)
        if status != 405:
            left_out.append(route.name)
    assert sorted(left_out) == [], "say in this file what these leave in the audit log, or why nothing"


def test_every_act_of_the_walk_leaves_its_line_with_who_and_where_and_no_secret(walk: Walk) -> None:
    wrong = []
    for route in routes(walk.world):
        if route.name not in LEFT:
            continue
        wanted, entries = LEFT[route.name], walk.told(route)
        if not entries:
            wrong.append((route.name, wanted.act, "nothing"))
            continue
        person = walk.world.people.get(wanted.who)
        if wanted.who != "visitor" and entries[-1].person != person:
            wrong.append((route.name, wanted.act, f"by {entries[-1].person}"))
        if route.path.startswith("/c/") and entries[-1].collection_name != "birds":
            wrong.append((route.name, wanted.act, f"in {entries[-1].collection_name!r}"))
    assert wrong == []
    for secret in (SECRET, "admin-password", "bystander-password", walk.world.invitation.token, "nobody@example.org"):
        assert secret not in walk.words


def test_a_refused_act_leaves_no_line(walk: Walk) -> None:
    for who in ("annotator", "visitor"):
        client = walk.world.client(who)
        before = AuditEntry.objects.count()
        for route in routes(walk.world):
            if route.action in ("admin", "adjudicate", "own-site"):
                client.post(route.path, walk.data(route.name) if route.name in LEFT else {})
        assert AuditEntry.objects.count() == before, who


def test_every_act_that_the_code_records_has_words(settings: Any) -> None:
    """`record(..., "act")` with a word that ACTS lacks would fail only when it happens."""
    import ast

    from config import env

    said = set()
    for app in ("annotation", "api", "corpus", "judges", "training", "benchmark"):
        for path in (env.ROOT / app).rglob("*.py"):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if "record(" in text else ():
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "record" and len(node.args) > 1:
                    second = node.args[1]
                    parts = [second.body, second.orelse] if isinstance(second, ast.IfExp) else [second]
                    said |= {part.value for part in parts if isinstance(part, ast.Constant)}
    assert len(said) > 40
    assert said - ACTS.keys() == set()


def test_acts_of_several_steps_are_told_each(walk: Walk) -> None:
    """An adjudication taken back, aspects with a draft and a blind sample, judgments set aside, a gold sample."""
    admin, adjudicator, member = walk.world.client("admin"), walk.world.client("adjudicator"), walk.world.bystander
    adjudicator.post("/c/birds/adjudicate/submit/", {"item": walk.conflict.pk, "grade": 1})
    adjudicator.post("/c/birds/adjudicate/undo/", {"item": walk.conflict.pk})
    desk = f"/c/birds/aspects/{walk.world.pair.query_id}/"
    adjudicator.post(f"{desk}add/", {"text": "How fast it flows", "rationale": "A part of it.", "importance": "3"})
    draft = adjudicator.post(f"{desk}upload/", {"file": upload("ice.txt", "Ice flows. " * 40)})["Location"]
    adjudicator.post(draft, {"title": "Ice", "passage": "Ice flows. " * 40, "aspects": ["a1"]})
    assert AuditEntry.objects.filter(act="aspects.revised", details__did="passage").count() == 1
    adjudicator.post("/c/birds/aspects/second-person/", {"size": "1", "seed": "0"})
    assert AuditEntry.objects.get(act="aspects.sample").details == {"queries": 1, "seed": 0}
    admin.post(f"/c/birds/people/{member.pk}/exclude/", {"note": "fast"})
    admin.post(f"/c/birds/quality-control/exclusions/{JudgmentExclusion.objects.get().pk}/reinstate/")
    assert set(AuditEntry.objects.filter(act__startswith="judgments.").values_list("concerns", flat=True)) == {
        member.user_id
    }
    admin.post("/c/birds/gold/", {"size": "1", "seed": "0", "spot": "0.2"})
    admin.post(f"/c/birds/gold/{GoldSet.objects.get().number}/end/")
    acts = AuditEntry.objects.order_by("pk").values_list("act", flat=True)
    for room, *ways in (("conflict", "settled", "undone"), ("judgments", "aside", "back"), ("gold", "made", "ended")):
        assert list(acts.filter(act__startswith=f"{room}.")) == [f"{room}.{way}" for way in ways]
