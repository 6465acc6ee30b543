"""Names of models as providers write them: whether two of them are the same model. Pure."""

import re

# What may follow a name without making another model of it: a date, a revision, a route of a gateway.
ENDINGS = re.compile(
    r"([-@_.](20\d\d-?[01]\d-?[0-3]\d|\d{4}|00\d)|[-:@]latest|-v\d+(:\d+)?|:(free|nitro|floor|exacto|online)|\.gguf)$"
)
DATED = re.compile(r"[-@_.](20\d\d-?[01]\d-?[0-3]\d|\d{4}|00\d)(-v\d+(:\d+)?)?$")
# What may stand before it: the path or the publisher, and at Bedrock a region.
REGION = re.compile(r"^(us|eu|apac|au|jp|ca|global|us-gov)\.")
PUBLISHER = re.compile(r"^(anthropic|amazon|meta|mistral|cohere|openai|deepseek|qwen|google|ai21)\.")


def is_same_model(asked: str, answered: str) -> bool:
    """Return whether an answer's name is that of the model that was asked: dated, an alias of it, or with its path.

    Two dates of one name are two models: providers change prices between them.
    """
    first, second = _plain_name(asked), _plain_name(answered)
    if not answered or first == second:
        return True
    dates = {date for date in (_date(first), _date(second)) if date}
    return _undated(first) == _undated(second) and len(dates) < 2


def _plain_name(name: str) -> str:
    last = name.strip().lower().rstrip("/").rpartition("/")[2]
    return PUBLISHER.sub("", REGION.sub("", last))


def _date(name: str) -> str:
    found = DATED.search(name)
    return found[1].replace("-", "") if found else ""


def _undated(name: str) -> str:
    while (shorter := ENDINGS.sub("", name)) != name and shorter:
        name = shorter
    return name
