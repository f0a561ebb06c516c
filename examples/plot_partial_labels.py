"""What missing labels cost, and how much of it CLS+ recovers

A growing share of the positives of yeast is hidden. A network that takes unannotated entries for
negatives (AN) is compared with CLS+, in which two networks select for each other the entries that
are likely missing positives and soften their targets. Test rows keep their full labels.
"""

import matplotlib.pyplot as plt

import labelweave as lw
from labelweave.data.scenarios import hide_positives

train, test = lw.load_dataset("yeast").split()
shares = [0.0, 0.25, 0.5, 0.75]
scores = {"an": [], "cls+": []}
for share in shares:
    labels = hide_positives(train.Y, share, random_state=0).Y
    for method, values in scores.items():
        model = lw.make(method, random_state=0).set_params(base__hidden=[128], base__epochs=40)
        values.append(lw.evaluate(model.fit(train.X, labels), test)["f1_example"])
    print(f"{share:.0%} blank: AN {scores['an'][-1]:.3f}, CLS+ {scores['cls+'][-1]:.3f}")

figure, axes = plt.subplots(figsize=(5, 3.2))
for (method, values), marker in zip(scores.items(), "os", strict=True):
    axes.plot([100 * share for share in shares], values, marker=marker, label=method.upper())
axes.set(xlabel="positives that are blank, %", ylabel="example F1 on full test labels")
axes.legend()
plt.show()
