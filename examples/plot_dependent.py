"""Labels that go together

Genes of yeast have several functions, and some functions imply others. One classifier a label
(BR) knows nothing of that; the other methods model labels together. The left plot shows how
the labels go together, the right one how often the whole label set of a test row is right.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelweave as lw

train, validation, test = lw.load_dataset("yeast").split(validation=0.2)
scores = {}
for method in ("br", "mlp", "chain-ensemble", "label-powerset", "c-gmvae", "extra-trees"):
    model = lw.make(method, threshold="tuned:subset_accuracy", random_state=0)
    model.fit(train.X, train.Y, validation=validation)
    found = lw.evaluate(model, test)
    scores[method] = found["subset_accuracy"]
    print(f"{method:14} whole sets right {found['subset_accuracy']:.3f}, mAP {found['map']:.3f}")

Y = train.Y.to_numpy()
together = (Y.T @ Y) / Y.sum(axis=0)[:, None]
np.fill_diagonal(together, np.nan)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
image = left.imshow(together, cmap="viridis", vmin=0, vmax=1)
ticks = range(0, len(together), 3)
left.set(xlabel="also has label", ylabel="rows with label", xticks=ticks, yticks=ticks)
figure.colorbar(image, ax=left, label="share of rows")
right.barh(list(scores), list(scores.values()))
right.invert_yaxis()
right.set(xlabel="whole label sets right, test rows")
figure.tight_layout()
plt.show()
