"""What pages show of errors and messages."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from annotation.for_reader import say_to_reader

register = template.Library()


@register.filter
def for_reader(value: object) -> str:
    """An error or a message without a command's flags and backticks; what is escaped already stays so."""
    text = str(value) if not hasattr(value, "__html__") else str(value.__html__())
    plain = say_to_reader(text)
    # Quotation marks and words are all that was put in, so markup stays what it was.
    return mark_safe(plain) if isinstance(value, SafeString) or hasattr(value, "__html__") else plain
