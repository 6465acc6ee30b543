"""What the pages do, the API does: each address that takes a POST has its operations below, or a reason why not."""

from typing import Any

import pytest
from django.db import transaction

from api.authentication import AccessTokenAuth
from api.urls import api
from tests.site.test_permissions import World, routes

pytestmark = pytest.mark.django_db
HERE = "/collections/{slug:name}/"

OPERATIONS: dict[str, tuple[str, ...]] = {
    # people and their work
    "judge_next": ("POST task/claim",),
    "judge_submit": ("POST task/judge",),
    "judge_evidence": ("POST task/write",),
    "judge_skip": ("POST task/skip",),
    "judge_flag": ("POST task/flag",),
    "judge_undo": ("POST task/undo",),
    "grade_gold": ("GET gold/task", "POST gold/task"),
    "gold_review": ("GET gold/review", "POST gold/review"),
    "adjudicate_submit": ("POST conflict/resolve",),
    "adjudicate_undo": ("POST conflict/undo",),
    "invite": ("POST invitations",),
    "make_reusable_link": ("POST invitations/link",),
    "revoke_invitation": ("DELETE invitations/{number}",),
    "join_as_owner": ("POST members/join",),
    "member_role": ("PATCH members/{number}",),
    "member_active": ("PATCH members/{number}", "DELETE members/{number}"),
    "person_pause": ("PATCH members/{number}",),
    "person_expert": ("PATCH members/{number}",),
    "person_qualification": ("POST members/{number}/{act}",),
    "exclude_judgments": ("POST exclusions",),
    "reinstate_judgments": ("POST exclusions/{number}/reinstate",),
    # quality control
    "quality_control": ("PATCH quality-control",),
    "make_checks": ("POST attention-checks",),
    "withdraw_checks": ("POST attention-checks/withdraw",),
    "write_arguments": ("POST attention-checks/arguments",),
    "make_qualification": ("POST qualification-tests",),
    "write_consent": ("POST consent",),
    "gold": ("POST gold",),
    "gold_end": ("POST gold/{number}/end",),
    "compare_near_duplicates": ("POST near-duplicates",),
    "new_study": ("POST studies",),
    "stop_study": ("POST studies/{number}/end",),
    # aspects
    "aspects_act": ("POST aspects/{number}/{act}",),
    "aspects_export": ("POST aspects/export",),
    "aspects_sample": ("POST aspects/sample",),
    "aspects_second": ("GET aspects/sample/task", "POST aspects/sample/task"),
    "aspect_review_claim": ("POST aspect-reviews/claim",),
    "aspect_review": tuple(f"POST aspect-reviews/{{number}}/{step}" for step in ("weights", "aspects", "documents")),
    "aspect_review_undo": ("POST aspect-reviews/{number}/{act}",),
    "aspect_review_release": ("POST aspect-reviews/{number}/{act}",),
    # a collection: settings, pairs, files
    "new_collection": ("POST /collections",),
    "settings": ("PATCH settings",),
    "cost_settings": ("PATCH settings",),
    "arm_settings": ("PATCH settings",),
    "instruction": ("PATCH settings",),
    "guidelines_editor": ("PATCH settings",),
    "apply_preset": ("POST settings/preset",),
    "bulk_acts": ("POST pair-acts",),
    "run_bulk_act": ("POST pair-acts/{number}/run", "GET pair-acts/{number}/file"),
    "undo_bulk_act": ("POST pair-acts/{number}/undo",),
    "hand_over_skipped": ("POST pairs/skipped/adjudicate",),
    "import": ("POST imports",),
    "file_import": ("POST imports/{number}/options",),
    "control_import": ("POST imports/{number}/{act}",),
    "web_searches": ("POST web-searches", "POST web-searches/estimate"),
    "control_web_search": ("POST web-searches/{number}/{act}",),
    "make_export": ("POST exports",),
    "export_audit_log": ("GET audit-log",),
    # judges and labels
    "start_campaign": ("POST campaigns", "POST campaigns/estimate"),
    "write_evidence": ("POST campaigns/evidence", "POST campaigns/evidence/estimate"),
    "control_campaign": ("POST campaigns/{number}/{act}",),
    "price": ("PATCH prices/{number}",),
    "use_panel": ("POST panel",),
    "choose_members": ("POST panel",),
    "load_judges_file": ("POST judges/file",),
    "self_check": ("POST self-checks", "POST self-checks/estimate"),
    "ask_canaries": ("POST canaries",),
    "schedule_canaries": ("PATCH canaries",),
    "audit_draw": ("POST audits/{number}/draw",),
    "audit_to_people": ("POST audits/{number}/to-people",),
    "audit_go_on": ("POST audits/{number}/go-on",),
    "recompute": ("POST quality",),
    "measure_agreement": ("POST agreement",),
    "compare_policies": ("POST policies",),
    "find_label_errors": ("POST label-errors",),
    "cancel_label_errors": ("POST label-errors/cancel",),
    # rankings
    "query_lists": ("PUT query-lists/{slug:split}",),
    "delete_query_list": ("DELETE query-lists/{slug:split}",),
    "create_upload": ("POST uploads",),
    "delete_upload": ("DELETE uploads/{number}",),
    "upload_runs": ("POST runs/import",),
    "make_run": ("POST runs", "POST runs/estimate"),
    "delete_run": ("DELETE runs/{number}",),
    "control_run": ("POST runs/{number}/{act}",),
    "qrels": ("POST qrels",),
    "compute_leaderboard": ("POST leaderboard",),
    "make_report": ("POST reports",),
    "hole_fillings": ("POST hole-fillings", "POST hole-fillings/estimate"),
    "send_pairs": ("POST hole-fillings/send",),
    "control_filling": ("POST hole-fillings/{number}/{act}",),
    "start_answers": ("POST answers", "POST answers/estimate"),
    "control_answers": ("POST answers/{number}/{act}",),
    "start_agents": ("POST agents", "POST agents/estimate"),
    "control_agents": ("POST agents/{number}/{act}",),
    "control_study": ("POST reference-studies", "POST reference-studies/close"),
    "write_study_answer": ("POST reference-studies/writing", "POST reference-studies/writing/{act}"),
    "rate_study_answers": ("POST reference-studies/rating", "POST reference-studies/rating/undo"),
    "syntheses": ("POST syntheses", "POST syntheses/estimate"),
    "control_synthesis": ("POST syntheses/{number}/{act}", "POST syntheses/{number}/import"),
    "suites": ("POST /suites",),
    "control_suite": ("DELETE /suites/{number}",),
    # training
    "start_training": ("POST trainings",),
    "control_job": ("POST trainings/{number}/{act}",),
    "judge_outputs": ("POST trainings/{number}/judge",),
    "use_model": ("POST models/{number}/{act}",),
    "compare_losses": ("POST models/losses",),
    "start_curve": ("POST curves",),
    "control_curve": ("POST curves/{number}/{act}",),
    # webhooks
    "webhooks": ("POST webhooks",),
    "webhook": ("PATCH webhooks/{number}",),
    "control_webhook": (
        "POST webhooks/{number}/test", "POST webhooks/{number}/secret", "POST webhooks/{number}/replay",
        "PATCH webhooks/{number}", "DELETE webhooks/{number}",
    ),
    "replay_webhook": ("POST webhooks/{number}/replay",),
}  # fmt: skip

ONESELF = "what somebody reads and agrees to, or how pages look to them: no program does it for them"
ACCOUNT = "accounts, sign-in and tokens: a token must not open, close or take over an account"
BY_EYE = "a page or file is read into passages by eye; the API takes the passage itself (aspects/NUMBER/paste)"
SAME_TASKS = "the same tasks, several of a query on one page; the API hands them out one by one"
EXCEPTIONS = {
    "display": ONESELF,
    "judge_consent": ONESELF,
    "judge_returned": ONESELF,
    "judge_guidelines": ONESELF,
    "judge_draft": "what is typed and not sent yet: a program keeps its own",
    "unsent_form": "a form that a browser sent after its session had ended; a token has no session",
    "judge_query_next": SAME_TASKS,
    "judge_query_submit": SAME_TASKS,
    "judge_query_skip": SAME_TASKS,
    "judge_query_flag": SAME_TASKS,
    "judge_query_undo": SAME_TASKS,
    "aspects_upload": BY_EYE,
    "aspects_cut": BY_EYE,
    "aspects_draft": BY_EYE,
    "aspects_again": BY_EYE,
    "aspects_dismiss": BY_EYE,
    "save_view": "filters of the page of pairs that somebody keeps for themselves",
    "change_view": "filters of the page of pairs that somebody keeps for themselves",
    **dict.fromkeys(("push_export", "push_model"), "the hub has an API of its own, and a program its own token"),
    "preview_export": "shows what the form would export; nothing is written",
    "test_model": "a person waits up to 45 seconds for a model; a program runs a self-check, or check_judges",
    "export_site_audit_log": "the audit log of the whole site, accounts among it; that of a collection is read",
    **dict.fromkeys(
        (
            "account_login", "account_logout", "account_signup", "account_inactive", "account_reauthenticate",
            "account_change_password", "account_reset_password", "account_reset_password_done",
            "account_reset_password_from_key", "account_reset_password_from_key_done", "mfa_authenticate",
            "mfa_reauthenticate", "mfa_activate_totp", "mfa_deactivate_totp", "mfa_generate_recovery_codes",
            "mfa_download_recovery_codes", "mail_address", "end_other_sessions", "end_session", "provider_disconnect",
            "openid_connect_login", "invitation", "invitation_provider", "password_link", "member_password_link",
            "control_person", "tokens", "revoke_token",
        ),
        ACCOUNT,
    ),
}  # fmt: skip
"""Addresses that take a POST and have no operation, with the reason."""


def doors() -> dict[str, str]:
    """The action of each operation, by method and address."""
    found = {}
    for _prefix, router in api._routers:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                (door,) = operation.auth_callbacks
                assert isinstance(door, AccessTokenAuth)
                for method in operation.methods:
                    found[f"{method} {path.removeprefix(HERE)}"] = door.action
    return found


def posted(world: World) -> dict[str, str]:
    """The action of each address of the pages that takes a POST, by name."""
    found = {}
    for route in routes(world):
        if route.action is None or route.name in OPERATIONS.keys() | EXCEPTIONS.keys():
            found[route.name] = str(route.action)
            continue
        who = {"adjudicate": "adjudicator", "judge": "annotator"}.get(route.action, "owner")
        with transaction.atomic():
            status = world.client(who).post(route.path).status_code
            transaction.set_rollback(True)
        if status != 405:
            found[route.name] = route.action
    return found


def test_each_post_of_the_pages_has_its_operations_or_a_reason(settings: Any) -> None:
    pages, here = posted(World()), doors()
    assert OPERATIONS.keys().isdisjoint(EXCEPTIONS)
    assert sorted(pages.keys() - OPERATIONS.keys() - EXCEPTIONS.keys()) == [], "say here what the API has for these"
    assert sorted((OPERATIONS.keys() | EXCEPTIONS.keys()) - pages.keys()) == [], "there is no such address any more"
    wanted = {(name, operation) for name, operations in OPERATIONS.items() for operation in operations}
    assert sorted((name, operation) for name, operation in wanted if operation not in here) == []
    others = {(name, one, pages[name], here[one]) for name, one in wanted if pages[name] != here[one]}
    assert sorted(others) == [], "an operation asks for what its page asks for"
