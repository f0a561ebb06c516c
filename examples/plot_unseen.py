"""Labels without an example

A classifier knows six subjects. Two more are added by name and description only, and the model
ranks them for every document. Words are weighted by TF-IDF here, which needs nothing but
scikit-learn; `encoder="minilm"` uses sentence embeddings.
"""

import matplotlib.pyplot as plt
import numpy as np

import labelweave as lw

words = {
    "sea": "wave salt fish tide coral harbour",
    "desert": "sand dune camel heat oasis cactus",
    "forest": "oak moss fern wolf leaf owl",
    "kitchen": "oven knife flour pan recipe butter",
    "music": "piano violin melody chord rhythm song",
    "space": "rocket orbit moon star comet planet",
    "seafood": "fish recipe salt pan oven coral",
    "night sky": "star moon comet owl dune heat",
}
rng = np.random.default_rng(0)
names = list(words)


def document(*subjects):
    return " ".join(rng.choice(" ".join(words[name] for name in subjects).split(), size=10))


seen = names[:6]
labels = [list(rng.choice(seen, size=rng.integers(1, 3), replace=False)) for _ in range(400)]
texts = [document(*row) for row in labels]
model = lw.XML0Plus(encoder="tfidf", random_state=0).fit(texts, labels)
model.add_labels(names[6:], {name: words[name] for name in names[6:]})

new = {name: [document(name) for _ in range(30)] for name in names}
table = np.array([model.predict_proba(rows).mean(axis=0) for rows in new.values()])
order = [list(model.label_names_).index(name) for name in names]
for name in names[6:]:
    first = [row[0][0] for row in model.rank(new[name], 1, among="unseen")]
    print(f"{name}: first among the unseen labels in {first.count(name)} of 30 documents")

figure, axes = plt.subplots(figsize=(5.4, 4.2))
image = axes.imshow(table[:, order], cmap="viridis")
axes.set_xticks(range(len(names)), names, rotation=40, ha="right")
axes.set_yticks(range(len(names)), names)
axes.set(xlabel="label", ylabel="documents about")
figure.colorbar(image, label="mean probability")
plt.show()
