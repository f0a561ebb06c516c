"""Labels that occur together

Genes of yeast have several functions, and some functions imply others. One classifier per label
(BR) ignores this; the other methods model the labels jointly. The left plot shows which labels
occur together, the right one the share of test rows whose whole label set is right.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelweave as lw

train, validation, test = lw.load_dataset("yeast").split(validation=0.2)
scores = {}
for method in ("br", "mlp", "chain-ensemble", "label-powerset", "c-gmvae", "extra-trees"):
    model = lw.make(method, threshold="tuned:subset_accuracy", random_state=0)
    model.fit(train.X, train.Y, validation=validation)
    result = lw.evaluate(model, test)
    scores[method] = result["subset_accuracy"]
    print(f"{method:14} whole sets right {result['subset_accuracy']:.3f}, mAP {result['map']:.3f}")

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
