"""Names of models as providers write them: whether two names mean the same model. Pure."""

import re

# Suffixes that do not make it another model: a date, a revision, the route of a gateway.
ENDINGS = re.compile(
    r"([-@_.](20\d\d-?[01]\d-?[0-3]\d|\d{4}|00\d)|[-:@]latest|-v\d+(:\d+)?|:(free|nitro|floor|exacto|online)|\.gguf)$"
)
DATED = re.compile(r"[-@_.](20\d\d-?[01]\d-?[0-3]\d|\d{4}|00\d)(-v\d+(:\d+)?)?$")
# Prefixes of a name: the publisher, and on Bedrock a region.
REGION = re.compile(r"^(us|eu|apac|au|jp|ca|global|us-gov)\.")
PUBLISHER = re.compile(r"^(anthropic|amazon|meta|mistral|cohere|openai|deepseek|qwen|google|ai21)\.")


def is_same_model(requested_name: str, response_name: str) -> bool:
    """Return whether the name in a response means the requested model: with a date, an alias, or with its path.

    One name with two dates means two models: providers change prices between them.
    """
    first, second = _plain_name(requested_name), _plain_name(response_name)
    if not response_name or first == second:
        return True
    dates = {date for date in (_date(first), _date(second)) if date}
    return _undated(first) == _undated(second) and len(dates) < 2


def _plain_name(name: str) -> str:
    last = name.strip().lower().rstrip("/").rpartition("/")[2]
    return PUBLISHER.sub("", REGION.sub("", last))


def _date(name: str) -> str:
    match = DATED.search(name)
    return match[1].replace("-", "") if match else ""


def _undated(name: str) -> str:
    while (shorter := ENDINGS.sub("", name)) != name and shorter:
        name = shorter
    return name
