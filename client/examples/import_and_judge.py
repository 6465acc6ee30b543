# %% [markdown]
# # Import and judge
#
# From files to labels without the web page: import, what judging would cost, judging, agreement, export.
#
#     export QUORUM_URL=https://quorum.example QUORUM_TOKEN=quorum_…    # scopes read and manage
#     python import_and_judge.py books corpus.jsonl queries.jsonl

# %%
import sys
from pathlib import Path

from quorum_client import Quorum, QuorumError

name, *files = sys.argv[1:]
quorum = Quorum.from_environment()
shows_bars = sys.stderr.isatty()

# %% [markdown]
# The collection, which an owner's token for all collections creates where it is missing.

# %%
if name not in [row.name for row in quorum.collections()]:
    quorum.create_collection(name=name, title=name.title(), grades=1)
books = quorum.collection(name)

# %% [markdown]
# The files are checked before anything changes. What is wrong with them is said in one sentence.

# %%
try:
    imported = books.imports.run(files, bm25=3, progress=shows_bars)
except QuorumError as error:
    sys.exit(f"not imported: {error}")
print("imported:", {part: count for part, count in imported.report["new"].items() if count})

# %% [markdown]
# What judging would cost, and then judging, until every pair has a label or waits for people.

# %%
expected = books.campaigns.estimate(policy="ensemble")
price = "unknown" if expected.cost is None else f"{expected.cost:.2f} USD"
print(f"{expected.pairs} pairs, about {expected.calls:.0f} calls, cost: {price}")
started = books.campaigns.start(policy="ensemble", budget=5)
if started.campaign is None:
    sys.exit("every pair has been judged already")
judged = books.campaigns.wait(started.campaign, progress=shows_bars).status
print(f"{judged['labelled']} labelled, {judged['escalated']} wait for people, {judged['failed']} failed")

# %% [markdown]
# How far the judges agree, and whether the labels can go out.

# %%
agreement = books.agreement.read(judges=True)
print("Krippendorff's alpha:", agreement["alpha_nominal"]["value"])
print("can go out:", books.quality().can_go_out)

# %% [markdown]
# The labels as qrels.

# %%
for path in books.exports.run(format="qrels", folder=Path(name), progress=shows_bars):
    print("exported:", path)
quorum.close()
