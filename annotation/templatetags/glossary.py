"""The tag that links a term's first use on a page to the glossary."""

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotation.access.glossary.terms import TERMS

register = template.Library()


@register.simple_tag
def explain(*keys: str) -> SafeString:
    """Return a link to the glossary for each of the terms, by their anchors."""
    links = SafeString("")
    for key in keys:
        words = _("What does “%(term)s” mean?") % {"term": TERMS[key][0]}
        links += format_html(' <a class="explain" href="{}#{}">{}</a>', reverse("glossary"), key, words)
    return links
