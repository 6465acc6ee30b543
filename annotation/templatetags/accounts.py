"""Tags and filters of the account pages and of the audit log."""

from django import template

from annotation.access.audit_log.recording import ACTS
from annotation.models import AuditEntry
from annotation.people.accounts import single_sign_on

register = template.Library()
register.simple_tag(single_sign_on.name_of_provider, name="sign_in_provider")


@register.filter
def act_label(entry: AuditEntry) -> str:
    """Return the title of an audit log entry's act; its key where this version has no title."""
    return str(ACTS.get(entry.act, entry.act))
