"""What is asked for the keyword form of a query, and for a query that a document answers, in our own words."""

from judges.prompts.conversations import step_prompt
from judges.prompts.render import DOCUMENT_LIMIT, TEXT_LIMIT, truncated_field
from judges.records import Prompt


def keywords_prompt(query: str) -> Prompt:
    """The same need, as it would be typed into a search box."""
    return step_prompt("query-keywords", truncated_field("query", query, TEXT_LIMIT))


def ask_prompt(document: str) -> Prompt:
    """A query of somebody who does not know the document and is helped by it."""
    return step_prompt("query-ask", truncated_field("document", document, DOCUMENT_LIMIT))
