"""Pages as tests read them: how a template breaks its lines is nobody's business."""

import re


def flat(html: str) -> str:
    """The page in one line, without white space beside tags."""
    return re.sub(r"\s*(<[^>]*?)\s*(>)\s*", r"\1\2", " ".join(html.split()))


def holds(source: str, word: str) -> bool:
    """A number counts where it stands alone: tokens are full of digits."""
    return bool(re.search(rf"(?<![\w-]){word}(?![\w-])", source)) if word.isdigit() else word in source


def page_text(client, path):
    response = client.get(path)
    assert response.status_code == 200, response.content.decode()[:500]
    return flat(response.content.decode())


def hidden_fields(answer):
    """What a page that asks once more sends along."""
    found = re.findall(r'type="hidden" name="(\w+)"\s+value="([^"]*)"', answer.content.decode())
    return {name: value for name, value in found if name != "csrfmiddlewaretoken"}
