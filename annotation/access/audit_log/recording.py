"""The audit log: actions of people with rights, recorded in the transaction of the action and never changed.

Judgments, drafts, skips and undos are not recorded here, because their rows are a history already
(annotation/work/judging/page.py). Details are scalars or short lists, never a password, token or key.
The columns `person` and `concerns` refer to people.
"""

from typing import Protocol

from django.utils.translation import gettext_lazy as _

from annotation.models import AuditEntry, User
from corpus.models import Collection

# The recorded actions, as the page describes them: "alice ...".
ACTS = {
    "session.in": _("signed in"),
    "session.out": _("signed out"),
    "session.failed": _("failed to sign in"),
    "session.locked": _("was locked out after failed sign-ins"),
    "session.ended": _("signed out devices"),
    "password.changed": _("changed the password"),
    "password.asked": _("requested a password reset link"),
    "password.link": _("created a password reset link"),
    "password.reset": _("reset the password"),
    "second-factor.on": _("turned on two-factor authentication"),
    "second-factor.off": _("turned off two-factor authentication"),
    "second-factor.removed": _("turned off another person's two-factor authentication"),
    "recovery-codes.made": _("created recovery codes"),
    "recovery-code.used": _("signed in with a recovery code"),
    "provider.connected": _("connected a sign-in provider"),
    "provider.disconnected": _("disconnected a sign-in provider"),
    "token.made": _("created an access token"),
    "token.revoked": _("revoked an access token"),
    "share.made": _("created a read-only link to a page"),
    "share.revoked": _("revoked a read-only link to a page"),
    "webhook.made": _("created a webhook"),
    "webhook.changed": _("changed a webhook"),
    "webhook.secret": _("replaced the secret of a webhook"),
    "webhook.tested": _("sent a test event to a webhook"),
    "webhook.replayed": _("replayed deliveries of a webhook"),
    "webhook.disabled": _("disabled a webhook that kept failing"),
    "webhook.deleted": _("deleted a webhook"),
    "account.made": _("created an account"),
    "account.mail": _("changed the email address"),
    "account.inbox-mail": _("chose when to get mail about their collections"),
    "account.stopped": _("closed an account"),
    "account.started": _("reopened an account"),
    "account.pseudonymised": _("pseudonymised an account"),
    "account.owner": _("changed the owner role"),
    "member.joined": _("became a member"),
    "member.role": _("changed a role"),
    "member.active": _("deactivated or activated a membership"),
    "member.paused": _("paused a member"),
    "member.resumed": _("resumed a member"),
    "member.limits": _("changed a member's quota or deadline"),
    "member.expert": _("changed expert status"),
    "judgments.aside": _("excluded judgments"),
    "judgments.back": _("reinstated judgments"),
    "checks.made": _("created attention checks"),
    "checks.withdrawn": _("withdrew attention checks"),
    "arguments.asked": _("generated debates for gold pairs"),
    "qualification.made": _("created a qualification test"),
    "qualification.asked": _("asked to take the qualification test again"),
    "qualification.again": _("allowed another attempt at the qualification test"),
    "qualification.passed": _("waived the qualification test"),
    "consent.written": _("changed the consent text"),
    "gold.made": _("drew a gold sample"),
    "gold.ended": _("ended a gold sample"),
    "gold.explained": _("uploaded explanations of gold pairs"),
    "invitation.made": _("invited a person"),
    "invitation.revoked": _("withdrew an invitation"),
    "invitation.accepted": _("accepted an invitation"),
    "collection.made": _("created a collection"),
    "collection.deleted": _("deleted a collection"),
    "import.files": _("imported files"),
    "import.queries": _("imported queries of a query log"),
    "import.judgments": _("imported judgments"),
    "import.web": _("started a web search for documents"),
    "import.web-control": _("cancelled or resumed a web search"),
    "comparisons.judges": _("asked judges for preferences"),
    "comparisons.judges-control": _("cancelled or resumed comparisons by judges"),
    "settings.changed": _("changed settings"),
    "settings.instruction": _("changed the instruction"),
    "settings.guidelines": _("changed the guidelines"),
    "price.changed": _("changed a model price"),
    "judges.configured": _("configured judges"),
    "panel.used": _("chose a panel"),
    "judges.keys-rotated": _("encrypted stored keys again"),
    "judge.added": _("added a model"),
    "judge.changed": _("changed a model"),
    "judge.key-deleted": _("deleted the stored key of a model"),
    "judge.deleted": _("deleted a model"),
    "judge.restored": _("restored a model"),
    "judge.tested": _("tested a model"),
    "judge.self-check": _("tested a judge on known orders"),
    "campaign.started": _("started a campaign"),
    "campaign.control": _("paused, resumed, cancelled or retried a campaign, or resubmitted its lost batches"),
    "evidence.started": _("generated evidence"),
    "canaries.asked": _("ran canaries"),
    "canaries.schedule": _("changed the canary schedule"),
    "audit.to-people": _("sent audited labels to people"),
    "audit.drawn": _("drew more audits"),
    "audit.go-on": _("resumed automatic labelling"),
    "statistics.asked": _("computed statistics"),
    "policies.compared": _("compared policies"),
    "pairs.sent": _("sent selected pairs to people"),
    "pairs.returned": _("reassigned selected pairs"),
    "pairs.prioritised": _("set the priority of selected pairs"),
    "pairs.excluded": _("excluded the judgments of selected pairs"),
    "pairs.reinstated": _("reinstated the judgments of selected pairs"),
    "pairs.labelled": _("set the label of pairs"),
    "pairs.noted": _("wrote a note on a pair"),
    "pairs.exported": _("exported selected pairs"),
    "pairs.undone": _("undid a bulk action"),
    "skipped.handed-over": _("sent skipped items to adjudicators"),
    "thread.answered": _("answered a comment or flag"),
    "conflict.settled": _("resolved a conflict"),
    "conflict.undone": _("undid an adjudication"),
    "export.made": _("created an export"),
    "export.split-kept": _("kept a list of queries out of training sets"),
    "export.split-deleted": _("deleted a list of queries that was kept out of training sets"),
    "export.push-asked": _("started a push to a hub"),
    "export.hub-token": _("stored or deleted the token of a hub"),
    "export.pushed": _("pushed an export or a model to a hub"),
    "backup.asked": _("started a backup"),
    "backup.downloaded": _("downloaded a backup"),
    "backup.deleted": _("deleted a backup"),
    "study.made": _("started a paired study"),
    "study.ended": _("ended a paired study"),
    "comparisons.drawn": _("drew a set of comparisons"),
    "comparisons.control": _("paused, resumed or ended a set of comparisons"),
    "comparisons.deleted": _("deleted a set of comparisons"),
    "aspects.revised": _("revised the aspects of a query"),
    "aspects.reviewed": _("reviewed the aspects of a query"),
    "aspects.imported": _("imported aspects"),
    "aspects.exported": _("exported aspects"),
    "aspects.fetched": _("fetched a web page for a passage"),
    "aspects.sample": _("drew a blind sample of aspects"),
    "training.control": _("changed a training job or model"),
    "training.started": _("started training"),
    "runs.imported": _("imported runs"),
    "run.started": _("created a run"),
    "synthesis.started": _("started writing synthetic queries"),
    "synthesis.control": _("controlled the writing of synthetic queries"),
    "synthesis.imported": _("added synthetic queries to the collection"),
    "run.control": _("cancelled, resumed or deleted a run"),
    "answers.started": _("started an evaluation of answers"),
    "answers.control": _("cancelled or resumed an evaluation of answers"),
    "search_endpoint.added": _("added a search endpoint"),
    "search_endpoint.changed": _("changed a search endpoint"),
    "search_endpoint.tested": _("tested a search endpoint"),
    "search_endpoint.deleted": _("deleted a search endpoint"),
    "suite.made": _("created a benchmark suite"),
    "suite.deleted": _("deleted a benchmark suite"),
    "qrels.made": _("created a qrels version"),
    "filling.started": _("started hole filling"),
    "filling.ended": _("completed or cancelled hole filling"),
    "report.asked": _("created a benchmark report"),
    "gate.decided": _("compared a new run with the old one"),
    "gate.judging": _("had the pairs judged that decide a gate"),
    "agents.started": _("started agents or the grading of their answers"),
    "agents.control": _("cancelled or resumed a job with agents"),
    "references.started": _("started writing reference answers"),
    "references.study": _("started or closed the study of reference answers"),
    "references.answered": _("wrote an answer for the study of reference answers"),
    "references.rated": _("rated the answers to a query in the study of reference answers, or undid the rating"),
    "audit.exported": _("exported the audit log"),
}

# Kinds of actions for the filter of the page: a title, and the first parts of the actions' names.
KINDS = {
    "accounts": (
        _("Sign-in and accounts"),
        ("session", "password", "second-factor", "recovery-codes", "recovery-code", "provider", "token", "account"),
    ),
    "people": (_("Members and invitations"), ("member", "invitation")),
    "quality": (
        _("Quality control"),
        ("judgments", "checks", "arguments", "qualification", "consent", "gold", "study", "comparisons"),
    ),
    "data": (_("Data and settings"), ("collection", "import", "settings", "aspects", "share", "webhook", "backup")),
    "judges": (
        _("Judges and campaigns"),
        ("price", "judges", "panel", "judge", "campaign", "evidence", "canaries", "policies"),
    ),
    "labels": (_("Labels"), ("audit", "statistics", "pairs", "skipped", "thread", "conflict")),
    "training": (_("Training and export"), ("export", "training")),
    "benchmark": (
        _("Benchmark"),
        (
            "runs",
            "run",
            "search_endpoint",
            "suite",
            "qrels",
            "filling",
            "gate",
            "report",
            "answers",
            "agents",
            "references",
            "synthesis",
        ),
    ),
}


class SomeScope(Protocol):
    """Protocol of a scope (annotation.access.permissions, corpus.access): the user and the collection."""

    @property
    def user(self) -> User | None:
        """Return the signed-in user; None for a visitor."""

    @property
    def collection(self) -> Collection | None:
        """Return the collection that the request is about; None on pages of the whole site."""


def acts_of_kind(kind: str) -> list[str]:
    """Return the actions of a kind (a key of KINDS) in the order of ACTS."""
    _title, prefixes = KINDS[kind]
    return [act for act in ACTS if act.partition(".")[0] in prefixes]


def record(
    by: SomeScope | User | None,
    act: str,
    collection: Collection | None = None,
    *,
    concerns: User | None = None,
    **details: object,
) -> int:
    """Append an entry and return its id. Call it in the transaction of the action.

    `by`: the scope of the request, a user, or None for a command. `collection` defaults to that of the
    scope. `concerns`: the person affected by the action. Raises ValueError for an `act` that is not a
    key of ACTS.
    """
    # The page finds the description of an action by this key.
    if act not in ACTS:
        raise ValueError(f"{act!r} is not in annotation.access.audit_log.recording.ACTS")
    person = by if isinstance(by, User) or by is None else by.user
    if collection is None and by is not None and not isinstance(by, User):
        collection = by.collection
    entry = AuditEntry.objects.create(
        person=person,
        act=act,
        collection=collection,
        # Also by name, because the log outlives the collection.
        collection_name=collection.name if collection else "",
        concerns=concerns,
        details=details,
    )
    return entry.pk
