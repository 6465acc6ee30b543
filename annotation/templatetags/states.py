"""The states of jobs, pairs, people and deliveries as badges, in every template (settings): one colour for each state.

A state is always a word too. Amber waits, red needs somebody, green is done, teal is under way; grey is over without
a result.
"""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

STATES = {
    "info": "running making preparing judging finishing fetching importing checking checked labelled settled",
    "good": "ready finished done delivered filled imported accepted submitted used active working works set sent good"
    " pass",
    "warn": "waiting queued pending planned open conflict people escalated paused budget stopped interrupted failing"
    " missing returned expired changed skipped flagged cannot_tell",
    "danger": "failed refused error unparsed truncated prompt_cut out_of_range disabled fail",
    "": "cancelled dismissed undone withdrawn aside released standing closed inactive unjudged",
}
"""States by the class of their badge."""
TONES = {state: tone for tone, states in STATES.items() for state in states.split()}


@register.filter
def tone(state: str) -> str:
    """Return the class of a state's badge."""
    return TONES.get(state, "")


@register.simple_tag(name="state")
def show_state(state: str, words: object) -> SafeString:
    """Return the badge of a state with its name in the reader's words."""
    return format_html('<span class="{}">{}</span>', f"badge {tone(state)}".strip(), words)
