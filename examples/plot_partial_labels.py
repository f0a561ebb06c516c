"""What missing labels cost, and how much comes back

Positives of yeast are blanked, more and more of them. A network that takes blanks for negatives
(AN) is compared with CLS, in which two networks leave out each other's likely missing positives.
Test rows keep their full labels.
"""

import matplotlib.pyplot as plt

import labelweave as lw
from labelweave.data.scenarios import hide_positives

train, test = lw.load_dataset("yeast").split()
shares = [0.0, 0.25, 0.5, 0.75]
scores = {"an": [], "cls": []}
for share in shares:
    labels = hide_positives(train.Y, share, random_state=0).Y
    for method, found in scores.items():
        model = lw.make(method, random_state=0).set_params(base__hidden=[128], base__epochs=40)
        found.append(lw.evaluate(model.fit(train.X, labels), test)["f1_example"])
    print(f"{share:.0%} blank: AN {scores['an'][-1]:.3f}, CLS {scores['cls'][-1]:.3f}")

figure, axes = plt.subplots(figsize=(5, 3.2))
for (method, found), marker in zip(scores.items(), "os", strict=True):
    axes.plot([100 * share for share in shares], found, marker=marker, label=method.upper())
axes.set(xlabel="positives that are blank, %", ylabel="example F1 on full test labels")
axes.legend()
plt.show()
