"""Which missing labels CLS finds in single rows

Three quarters of the positives of scene are hidden. CLS removes, while it learns, the unannotated
entries of highest loss, because they are likely missing positives. For some rows the figure shows
the annotated labels, the missing ones and the entries of highest loss after training: as many as
CLS removes, over all rows and labels. The model never sees the missing labels.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hide_positives

train, _ = lw.load_dataset("scene").split()
truth = train.Y.to_numpy() == 1
annotated = hide_positives(train.Y, 0.75, random_state=0).Y.to_numpy() == 1
model = lw.CLS(random_state=0).set_params(base__epochs=30).fit(train.X, annotated)

losses = np.where(annotated, 0, -np.log1p(-model.predict_proba(train.X)))  # as negatives
n_removed = round(model.tau_h_ * (~annotated).sum())
removed = losses >= np.partition(losses.ravel(), -n_removed)[-n_removed]
missing = truth & ~annotated
print(f"{missing.sum()} labels are missing; {(removed & missing).sum()} of them are among the "
      f"{removed.sum()} removed ones")  # fmt: skip

rows = np.random.default_rng(0).choice(np.flatnonzero(missing.any(axis=1)), 16, replace=False)
figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.imshow(
    np.where(annotated, 0.6, np.where(missing, 0.25, 0))[rows], cmap="Greys", vmin=0, vmax=1
)
axes.scatter(*np.nonzero(removed[rows])[::-1], marker="x", color="tab:red", label="removed by CLS")
for shade, meaning in ((0.6, "annotated"), (0.25, "missing")):
    axes.scatter([], [], marker="s", color=plt.get_cmap("Greys")(shade), label=meaning)
axes.set_xticks(range(len(train.Y.names)), train.Y.names, rotation=40, ha="right")
axes.set(ylabel="row", yticks=range(16), yticklabels=rows)
axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
figure.tight_layout()
plt.show()
