"""Which labels did the annotators miss?

Half of the positives of yeast are hidden. The audit ranks all unannotated entries by the
probability that they are missing positives. The plot shows the share of hidden positives among the
first entries of the list, and that of a random list.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hide_positives

data = lw.load_dataset("yeast")[:1200]
hidden = hide_positives(data.Y, 0.5, random_state=0)
audit = lw.audit(lw.Dataset(data.X, hidden.Y), top=1500, folds=3, random_state=0)
missed = (data.Y.to_numpy() == 1) & (hidden.Y.to_numpy() == 0)
column = {name: j for j, name in enumerate(data.label_names)}
hits = np.array([missed[entry.row, column[entry.label]] for entry in audit])
precision = hits.cumsum() / np.arange(1, len(hits) + 1)
by_chance = missed.sum() / (hidden.Y.to_numpy() == 0).sum()
print(f"first 100 entries: {hits[:100].mean():.0%} are missing positives")
print(f"first 500 entries: {hits[:500].mean():.0%}; a random list: {by_chance:.0%}")

figure, axes = plt.subplots(figsize=(5, 3.2))
axes.plot(np.arange(1, len(hits) + 1), precision, label="audit")
axes.axhline(by_chance, linestyle="--", color="grey", label="by chance")
axes.set(xlabel="entries reviewed", ylabel="of them missing positives", ylim=(0, 1))
axes.legend()
plt.show()
