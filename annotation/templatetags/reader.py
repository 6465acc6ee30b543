"""What pages show of errors and messages."""

from typing import Any

from django import template
from django.forms.utils import ErrorList
from django.utils.safestring import SafeString, mark_safe

from annotation.for_reader import begin_sentence, say_to_reader

register = template.Library()


@register.filter
def for_reader(value: object) -> Any:
    """An error or a message as a whole sentence; each one of a form's errors. What is escaped already stays so."""
    if isinstance(value, ErrorList):
        sentences = value.copy()
        sentences.data = [for_reader(error) for error in value]
        return sentences
    plain = clause_for_reader(value)
    sentence = begin_sentence(plain)
    return mark_safe(sentence) if isinstance(plain, SafeString) else sentence


@register.filter
def clause_for_reader(value: object) -> str:
    """An error within a sentence of the page: without a command's flags and backticks, and with its small letter."""
    text = str(value) if not hasattr(value, "__html__") else str(value.__html__())
    plain = say_to_reader(text)
    # Quotation marks and words are all that was put in, so markup stays what it was.
    return mark_safe(plain) if isinstance(value, SafeString) or hasattr(value, "__html__") else plain
