# %% [markdown]
# # Agreement to pandas
#
# Every two assessors with kappa, its interval and the pairs that both graded, as a data frame.
#
#     export QUORUM_URL=https://quorum.example QUORUM_TOKEN=quorum_…    # scope read
#     python agreement_to_pandas.py books

# %%
import sys
from io import StringIO

import pandas

from quorum_client import Quorum

(name,) = sys.argv[1:]
with Quorum.from_environment() as quorum:
    table = quorum.collection(name).agreement.read_table()

# %%
couples = pandas.read_csv(StringIO(table))
print(couples[["a", "b", "n", "kappa", "kappa_low", "kappa_high", "percent"]].to_string(index=False))

# %% [markdown]
# The same as a matrix, and who agrees least with the others.

# %%
turned = couples.rename(columns={"a": "b", "b": "a"})
matrix = pandas.concat([couples, turned]).pivot(index="a", columns="b", values="kappa")
print(matrix.round(2).to_string())
print("lowest mean kappa:", matrix.mean().idxmin())
