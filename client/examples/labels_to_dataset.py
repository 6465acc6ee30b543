# %% [markdown]
# # Labels to a Hugging Face dataset
#
# Every labelled pair with its texts as a `datasets.Dataset`, saved to disk; `push_to_hub` would share it.
#
#     export QUORUM_URL=https://quorum.example QUORUM_TOKEN=quorum_…    # scope read
#     python labels_to_dataset.py books books-dataset

# %%
import sys

from quorum_client import Quorum, to_dataset

name, folder = sys.argv[1:]
with Quorum.from_environment() as quorum:
    dataset = to_dataset(quorum.collection(name).labelled_texts())

# %%
dataset.save_to_disk(folder)
print(dataset)

# %% [markdown]
# How the grades are spread, and where they come from.

# %%
print(dataset.to_pandas().groupby(["grade", "origin"]).size().to_string())
