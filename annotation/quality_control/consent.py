"""What annotators agree to before their first task, in versions, and that they did (SPEC S7)."""

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.audit_log.recording import record
from annotation.models import Membership, User
from annotation.models.quality_control import Consent, ConsentText
from corpus.errors import BadInput
from corpus.models import Collection

DEFAULT = gettext_noop("""\
What you do here
You read pairs of a query and a document and say whether the document helps. Some pairs have a known answer, and some \
come twice: they measure how well the work goes, and you cannot tell them apart.

What is stored
Your answers, your comments, and how long a page was open. They stand under your user name. Your account and \
the log of acts keep when you signed in, from which network address and with which browser, and what was changed about \
your account. Nothing else is stored about you.

What happens with it
Your answers may be published without your name, as part of a data set. When you leave, your name can be replaced by a \
number; what you judged stays.

It is your choice
You may stop at any time without giving a reason, and ask an admin of this collection to set your judgments aside.
""")


@transaction.atomic
def write(*, collection: Collection, text: str, by: User) -> int:
    """Write a version that everybody is asked to agree to, and return its number. Raises BadInput when empty."""
    Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    text = text.replace("\r\n", "\n").replace("\0", "").strip()
    if not text:
        raise BadInput(_("write what annotators agree to"))
    held = ConsentText.current(collection)
    if held is not None and held.text == text and collection.consent_version:
        return held.version
    made = ConsentText.objects.create(
        collection=collection, version=held.version + 1 if held else 1, text=text, written_by=by
    )
    Collection.objects.filter(pk=collection.pk).update(consent_version=made.version)
    record(by, "consent.written", collection, version=made.version)
    return made.version


@transaction.atomic
def disable_consent(*, collection: Collection, by: User) -> None:
    """Stop asking for consent; what was agreed to stays."""
    Collection.objects.filter(pk=collection.pk).update(consent_version=0)
    record(by, "consent.written", collection, version=0)


@transaction.atomic
def accept(*, membership: Membership, version: int) -> None:
    """Keep that somebody agreed. Raises BadInput for another version than the one that holds."""
    if version != membership.collection.consent_version or not version:
        raise BadInput(_("the text was changed since you opened it: please read it again"))
    Consent.objects.get_or_create(membership=membership, version=version)
    Membership.objects.filter(pk=membership.pk).update(consent=version)
