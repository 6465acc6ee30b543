"""What the sign-in page needs beside allauth's own context."""

from django import template

from annotation.accounts import single_sign_on
from annotation.audit_log.recording import ACTS
from annotation.models import AuditEntry

register = template.Library()
register.simple_tag(single_sign_on.name_of_provider, name="sign_in_provider")


@register.filter
def act_label(entry: AuditEntry) -> str:
    """What an entry of the audit log says was done; its key where a later version knows no words for it."""
    return str(ACTS.get(entry.act, entry.act))
