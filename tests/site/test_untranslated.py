"""No page of the Chinese interface shows an English string (check 18): every address, as everybody, empty and filled.

What is left in Latin letters on a Chinese page must be data or a proper name. Names and data are listed here.
"""

import json
import re
from html import unescape
from urllib.parse import urljoin

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from annotation.people.accounts.members import add_member
from tests.admin_site import judged_collection
from tests.benchmark_scene import SYSTEMS, whole_scene
from tests.site.test_permissions import ROLE, World, routes
from tests.site.untranslated import texts_with
from tests.stages import first_slow

pytestmark = pytest.mark.django_db

NAMES = r"""
    Quorum English USD CSV TSV SVG HTTP UTC MB BM25 TREC BEIR RAG LARA JSON lines? qrels jsonl? sha256 manifest metrics
    Krippendorff Cohen Fleiss Clopper Pearson Dawid Skene kappa Kappa alpha Alpha nDCG AUC sigmoid
    Prism Parquet Hugging Face Hub datasets load_dataset trec_eval ir_measures sentence transformers GPU CPU token Token
    RAGAlign(?:@\d+)? serve gpu-workers workers configure_judges import_collection changepassword manage paper
    released pair triplet tuple list
    scores votes labels resolved people machine negative_ prism tiny qwen\S* rerank
    (?:Hole|Judged|Unjudged)@\d+ (?:Hit|Recall)(?:@\d+)? Kendall Holm tau LaTeX HyDE query2doc MuGI BRIDGE FollowIR
    Pyserini BRIGHT-Pro QUORUM_BASE_MODELS tokenizer\.json owner/name filled
    Gzip gzip zip trec min-max z-score docs/judge\.md cross-encoder Qwen3\S* hub none sum mean
    genai-prices Qrels bootstrap Enter Hole@k
    ERank RTriever FlagEmbedding ms-swift Tevatron MTEB TensorBoard LoRA dropout wandb mlflow synthesize_scores pos neg
    erank-sft erank-grpo rtriever prism-extend ablation point list rank base all-linear cosine constant hybrid bce mse
    lambda cross-entropy grpo contrastive small SPLADE monoT5 m?monot5 Python Tavily Exa robots\.txt
    Webhook https QUORUM_WEBHOOK_NETWORKS SECRET_KEY
    quorum auto eager sdpa flash_attention_2 rr rollout ndcg se last cls safe Markdown
    Excel Quepid Label Studio Argilla
    OpenAPI Swagger If-Match Retry-After null detail client TRL DPO prompt chosen rejected restore export\.ready
    OpenSearch Elasticsearch Search\sRelevance\sWorkbench _rank_eval RankLib SVMlight JUnit JMESPath Bearer
    HTTP\swith\sJSON host:port uniform pptss head-torso-tail \{\{query\}\} "query" “query” multi_match lenient true
    _source\.text name\sdescription query、docid、rating 一个\scase Quepid，book 的\sbook
"""
DATA = r"""
    kept m-kept fixed explanation written_by grade
    birds stones books zoe stranger outsider bystander annotator adjudicator admin viewer owner offline[-\w]* main
    books-judge-\d m doc-\S* q\d+ ice\.example http overloaded tries from text title query_id doc_id answers _id
    A\spassage\sis\srelevant.* Questions\sabout\sthe\slanguage item size version count audit lara no yes
    address role days invitation session way Django dev debate single ensemble panel
    for against coverage ngrams tfidf Campaigns shop
"""
ZONE = r"[A-Z]\w+(?:/[\w+-]+)+"
"""A time zone, by its name in the tz database."""
KNOWN = re.compile(
    "|".join(
        [ZONE, *(rf"(?<![A-Za-z]){word}(?![A-Za-z])" for word in sorted((NAMES + DATA).split(), key=len, reverse=True))]
    )
)

SYSTEMS_AND_PEOPLE = re.compile("|".join([KNOWN.pattern, "charlie", *sorted(SYSTEMS, key=len, reverse=True)]))
MANY = 40
"""Kinds of pages that the benchmark of a collection leads to, at the least."""


@pytest.fixture
def world() -> World:
    """One of everything, a training set among it, and beside it a collection in the middle of its campaign."""
    made = World()
    export = settings.VAR / "exports" / "birds" / "one" / "manifest.json"
    export.parent.mkdir(parents=True, exist_ok=True)
    export.write_text(json.dumps({"format": "prism", "counts": {"rows": 3, "queries": 2}}))
    books = judged_collection()
    for who in ("annotator", "adjudicator", "owner"):
        add_member(user=made.people[who], collection=books, role=ROLE[who])
    return made


def left_in_english(response: HttpResponse, known: re.Pattern[str] = KNOWN) -> list[str]:
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return []
    return texts_with(response.content.decode(), "zh", known)


@pytest.mark.parametrize("who", first_slow(["owner", "annotator", "adjudicator", "visitor"], 2))
def test_no_page_shows_an_untranslated_string(world: World, who: str) -> None:
    client = Client(headers={"accept-language": "zh-CN"})
    if who != "visitor":
        client.force_login(world.people[who])
        for name in ("birds", "books"):
            client.post(f"/c/{name}/judge/next/")
    found = {}
    for route in routes(world):
        for path in dict.fromkeys([route.path, route.path.replace("/birds/", "/books/")]):
            for text in left_in_english(client.get(path)):
                found.setdefault(text, path)
    assert found == {}


@pytest.mark.slow
def test_no_page_of_a_benchmark_with_results_shows_an_untranslated_string() -> None:
    collection, charlie = whole_scene()
    client = Client(headers={"accept-language": "zh-CN"})
    client.force_login(charlie.user)
    root = f"/c/{collection.name}/benchmark/"
    found, seen, waiting = {}, set(), [root, "/suites/"]
    while waiting:
        path = waiting.pop()
        response = client.get(path)
        found |= {text: path for text in left_in_english(response, SYSTEMS_AND_PEOPLE)}
        links = re.findall(r'href="([^"#]+)', response.content.decode()) if "html" in response["Content-Type"] else []
        kinds = {re.sub(r"\d+", "N", link): unescape(urljoin(path, link)) for link in links if "as=" not in link}
        new = {kind: link for kind, link in kinds.items() if link.startswith(root) and kind not in seen}
        seen |= set(new)
        waiting += new.values()
    assert found == {}
    assert len(seen) > MANY


@pytest.mark.slow
def test_a_refused_form_speaks_chinese_too(world: World) -> None:
    client = Client(headers={"accept-language": "zh-CN"})
    client.force_login(world.people["owner"])
    addresses = [route.path for route in routes(world) if route.name not in ("invitation", "account_logout")]
    assert {text: path for path in addresses for text in left_in_english(client.post(path, {}))} == {}


def test_the_search_for_untranslated_strings_finds_one() -> None:
    page = '<html lang="zh"><p>你</p><p>Nothing yet</p><code>import</code><b lang="en">Which?</b><i title="Old">旧</i>'
    assert texts_with(page, "zh", KNOWN) == ["Nothing yet", "Old"]
