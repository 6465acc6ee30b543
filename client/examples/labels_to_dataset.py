# %% [markdown]
# # Labels to a Hugging Face dataset
#
# Every labelled pair with its texts as a `datasets.Dataset`, saved to disk; `push_to_hub` would share it.
#
#     export QUORUM_URL=https://quorum.example QUORUM_TOKEN=quorum_…    # scope read
#     python labels_to_dataset.py books books-dataset

# %%
import asyncio
import sys
from typing import Any

from datasets import Dataset

from quorum_client import AsyncQuorum

name, folder = sys.argv[1:]


# %% [markdown]
# The three lists are read at the same time, each page by page.


# %%
async def read_rows() -> list[dict[str, Any]]:
    """Read the labelled pairs with their texts."""
    async with AsyncQuorum.from_environment() as quorum:
        books = quorum.collection(name)

        async def read_queries() -> dict[str, str]:
            return {one.id: one.text async for one in books.queries()}

        async def read_documents() -> dict[str, str]:
            return {one.id: f"{one.title}\n{one.text}".strip() async for one in books.documents()}

        async def read_pairs() -> list[Any]:
            return [one async for one in books.pairs() if one.grade is not None]

        queries, documents, pairs = await asyncio.gather(read_queries(), read_documents(), read_pairs())
    # A pair of an earlier version of a text is in the list, but its text is not.
    return [
        {"query": queries[one.query], "document": documents[one.document], "grade": one.grade, "origin": one.origin}
        for one in pairs
        if one.query in queries and one.document in documents
    ]


# %%
dataset = Dataset.from_list(asyncio.run(read_rows()))
dataset.save_to_disk(folder)
print(dataset)
