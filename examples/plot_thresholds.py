"""From probabilities to label sets

The same probabilities are turned into label sets by different rules. All thresholds except the
fixed one are chosen on the validation rows; the bars show the test rows.
"""

import matplotlib.pyplot as plt

import labelweave as lw

train, validation, test = lw.load_dataset("yeast").split(validation=0.2)
model = lw.MLP(random_state=0).fit(train.X, train.Y, validation=validation)
rules = [0.5, "tuned:f1_example", "tuned:f1_macro", "per-label", "cardinality", "top-4"]
names = ["f1_example", "f1_macro", "subset_accuracy"]
rows = []
for rule in rules:
    model.tune_threshold(validation.X, validation.Y, rule)
    scores = lw.evaluate(model, test)
    rows.append([scores[name] for name in names])
    print(
        f"{rule!s:18}",
        *(f"{name} {value:.3f}" for name, value in zip(names, rows[-1], strict=True)),
    )

figure, axes = plt.subplots(figsize=(6.5, 3.2))
for j, (name, hatch) in enumerate(zip(names, ["", "//", ".."], strict=True)):
    places = [i + 0.27 * (j - 1) for i in range(len(rules))]
    axes.bar(places, [row[j] for row in rows], width=0.25, label=name, hatch=hatch)
axes.set_xticks(range(len(rules)), [str(rule) for rule in rules], rotation=20)
axes.set_ylabel("test rows")
axes.legend(fontsize="small")
plt.show()
