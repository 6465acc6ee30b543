"""Consent: the versions of the text that annotators agree to before their first task."""

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.models.quality_control import ConsentText
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection

DEFAULT = gettext_noop("""\
Your task
You read pairs of a query and a document and decide whether the document helps. Some pairs have a known answer and \
some appear twice. They measure the quality of the work and look like all other pairs.

Stored data
Your answers, your comments and the time a page was open are stored under your user name. Your account and \
the audit log record when you signed in, your network address and browser, and changes to your account. \
No other data about you is stored.

Use of the data
Your answers may be published as part of a data set, without your name. When you leave, your name can be replaced by a \
number; your judgments are kept.

Voluntary participation
You may stop at any time without giving a reason, and you can ask an admin of this collection to exclude your judgments.
""")


@transaction.atomic
def write(*, collection: Collection, text: str, by: User) -> int:
    """Store a version that every annotator must agree to, and return its number. Raises BadInput for an empty text."""
    # Two texts that are stored at the same moment would get the same version.
    hold(Collection.objects, collection.pk, no_key=True)
    text = text.replace("\r\n", "\n").replace("\0", "").strip()
    if not text:
        raise BadInput(_("Enter the consent text"))
    newest = ConsentText.current(collection)
    # The same text needs no second consent, unless consent was disabled in between.
    if newest is not None and newest.text == text and collection.consent_version:
        return newest.version
    version = newest.version + 1 if newest else 1
    ConsentText.objects.create(collection=collection, version=version, text=text, written_by=by)
    Collection.objects.filter(pk=collection.pk).update(consent_version=version)
    record(by, "consent.written", collection, version=version)
    return version


@transaction.atomic
def disable_consent(*, collection: Collection, by: User) -> None:
    """Stop asking for consent; recorded consents are kept."""
    Collection.objects.filter(pk=collection.pk).update(consent_version=0)
    record(by, "consent.written", collection, version=0)
