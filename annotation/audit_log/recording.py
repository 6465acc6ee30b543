"""The audit log: what somebody with power did, appended in the transaction of the act and never changed.

Judgments, drafts, skips and undos are not here: they are history already, row by row (annotation/judging/history.py).
Details are scalars or short lists, never a password, token or key; people stand in `person` and `concerns`, by
reference.
"""

from typing import Protocol

from django.utils.translation import gettext_lazy as _

from annotation.models import AuditEntry, User
from corpus.models import Collection

# What is recorded, and how a page says it: "alice ...".
ACTS = {
    "session.in": _("signed in"),
    "session.out": _("signed out"),
    "session.failed": _("failed to sign in"),
    "session.locked": _("was locked out after failed sign-ins"),
    "session.ended": _("ended sessions"),
    "password.changed": _("changed the password"),
    "password.asked": _("asked for a link to set a new password"),
    "password.link": _("made a link to set a new password"),
    "password.reset": _("set a new password by a link"),
    "second-factor.on": _("turned the second factor on"),
    "second-factor.off": _("turned the second factor off"),
    "second-factor.removed": _("removed somebody's second factor"),
    "recovery-codes.made": _("made recovery codes"),
    "recovery-code.used": _("signed in with a recovery code"),
    "provider.connected": _("connected a sign-in provider"),
    "provider.disconnected": _("disconnected a sign-in provider"),
    "account.made": _("made an account"),
    "account.mail": _("changed the mail address"),
    "account.stopped": _("stopped an account"),
    "account.started": _("started an account again"),
    "account.pseudonymised": _("pseudonymised a person"),
    "account.owner": _("made somebody an owner, or no owner any more"),
    "member.joined": _("became a member"),
    "member.role": _("changed a role"),
    "member.active": _("ended or renewed a membership"),
    "member.paused": _("paused somebody"),
    "member.resumed": _("let somebody go on"),
    "member.expert": _("made somebody an expert, or no expert any more"),
    "judgments.aside": _("set judgments aside"),
    "judgments.back": _("brought judgments back"),
    "checks.made": _("made attention checks"),
    "checks.withdrawn": _("withdrew attention checks"),
    "arguments.asked": _("had models argue about gold pairs"),
    "qualification.made": _("made a qualification test"),
    "qualification.again": _("let somebody take the qualification test again"),
    "qualification.passed": _("let somebody pass without the qualification test"),
    "consent.written": _("wrote what annotators agree to"),
    "gold.made": _("drew a gold sample"),
    "gold.ended": _("ended a gold sample"),
    "invitation.made": _("invited somebody"),
    "invitation.revoked": _("withdrew an invitation"),
    "invitation.accepted": _("accepted an invitation"),
    "collection.made": _("made a collection"),
    "collection.deleted": _("deleted a collection"),
    "import.files": _("imported files"),
    "import.judgments": _("imported judgments"),
    "settings.changed": _("changed settings"),
    "settings.instruction": _("changed the instruction"),
    "settings.guidelines": _("changed the guidelines"),
    "settings.money": _("changed the caps on money"),
    "price.changed": _("changed what a model costs"),
    "judges.configured": _("configured judges"),
    "panel.used": _("chose a panel"),
    "judge.tested": _("tested a model"),
    "judge.self-check": _("checked a judge against known orders"),
    "campaign.started": _("started a campaign"),
    "campaign.control": _("paused, resumed, cancelled or retried a campaign, or sent its lost batches again"),
    "evidence.started": _("had evidence written"),
    "canaries.asked": _("asked canaries"),
    "canaries.schedule": _("changed the schedule of canaries"),
    "audit.to-people": _("sent audited labels to people"),
    "audit.drawn": _("drew more audits"),
    "audit.go-on": _("let automatic labels go on"),
    "statistics.asked": _("had statistics computed"),
    "policies.compared": _("had policies compared"),
    "skipped.handed-over": _("handed skipped items to adjudicators"),
    "conflict.settled": _("settled a conflict"),
    "conflict.undone": _("took back an adjudication"),
    "export.made": _("asked for an export"),
    "settings.arms": _("changed the arms in which items are lent"),
    "study.made": _("made a paired study"),
    "study.ended": _("ended a paired study"),
    "aspects.revised": _("revised the aspects of a query"),
    "aspects.imported": _("imported aspects"),
    "aspects.exported": _("exported aspects"),
    "aspects.fetched": _("had a page fetched for a passage"),
    "aspects.sample": _("drew a blind sample of aspects"),
    "training.control": _("acted on a training job or model"),
    "training.started": _("started training"),
    "runs.imported": _("imported runs"),
    "run.started": _("had a run made"),
    "run.control": _("cancelled, went on with or deleted a run"),
    "suite.made": _("made a suite of collections"),
    "suite.deleted": _("deleted a suite of collections"),
    "qrels.made": _("made a version of the qrels"),
    "filling.started": _("began to fill the qrels"),
    "filling.ended": _("filled the qrels, or cancelled that"),
    "report.asked": _("had a report of the benchmark made"),
    "audit.exported": _("exported the audit log"),
}

# Kinds of acts that the page filters by: a title, and the first parts of the acts' names.
KINDS = {
    "accounts": (
        _("Sign-in and accounts"),
        ("session", "password", "second-factor", "recovery-codes", "recovery-code", "provider", "account"),
    ),
    "people": (_("Members and invitations"), ("member", "invitation")),
    "quality": (
        _("Quality control"),
        ("judgments", "checks", "arguments", "qualification", "consent", "gold", "study"),
    ),
    "data": (_("Data and settings"), ("collection", "import", "settings", "aspects")),
    "judges": (
        _("Judges and campaigns"),
        ("price", "judges", "panel", "judge", "campaign", "evidence", "canaries", "policies"),
    ),
    "labels": (_("Labels"), ("audit", "statistics", "skipped", "conflict")),
    "training": (_("Training and export"), ("export", "training")),
    "benchmark": (_("Benchmark"), ("runs", "run", "suite", "qrels", "filling", "report")),
}


class SomeScope(Protocol):
    """Any scope of annotation.permissions, or corpus.access: who asks, and for which collection."""

    @property
    def user(self) -> User | None:
        """Who asks; None: a visitor."""

    @property
    def collection(self) -> Collection | None:
        """Where; None: on a page of the site."""


def acts_of_kind(kind: str) -> list[str]:
    """The acts of a kind (a key of KINDS), in the order of ACTS."""
    _title, firsts = KINDS[kind]
    return [act for act in ACTS if act.partition(".")[0] in firsts]


def record(
    by: SomeScope | User | None,
    act: str,
    collection: Collection | None = None,
    *,
    concerns: User | None = None,
    **details: object,
) -> int:
    """Append one act and return its number; call it inside the transaction of the act.

    `by`: the scope of the request, a user, or None for a command. `collection` is the scope's unless given. `concerns`:
    to whom it was done. `act` is a key of ACTS: anything else is a ValueError.
    """
    # A page looks the words up by this key, so a misspelt one would be an act that nobody can read.
    if act not in ACTS:
        raise ValueError(f"{act!r} is not in annotation.audit_log.recording.ACTS")
    person = by if isinstance(by, User) or by is None else by.user
    if collection is None and by is not None and not isinstance(by, User):
        collection = by.collection
    entry = AuditEntry.objects.create(
        person=person,
        act=act,
        collection=collection,
        # By name, too: the log outlives the collection.
        collection_name=collection.name if collection else "",
        concerns=concerns,
        details=details,
    )
    return entry.pk
