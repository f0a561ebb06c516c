"""One student of two teachers

Two teachers know overlapping halves of the labels of yeast and were trained on rows of their own.
A student learns all labels from rows without any. It is compared with its teachers, all kept and
asked (union), and with a model that was given the labels of the student's rows.
"""

import matplotlib.pyplot as plt

import labelweave as lw
from labelweave.data.scenarios import share_among_teachers

train, test = lw.load_dataset("yeast").split()
shares = share_among_teachers(train, 2, overlap=0.5, random_state=0)
teachers = [
    lw.Teacher(lw.MLP(hidden=[128], epochs=40, random_state=0).fit(share.data.X, share.data.Y))
    for share in shares.teachers
]
student = lw.MLP(hidden=[128], epochs=40, random_state=0)
models = {
    "union": lw.TeacherUnion(teachers).fit(shares.rest.X),
    "bl": lw.BL(teachers, student=student, random_state=0).fit(shares.rest.X),
    "tc": lw.TC(teachers, student=student, random_state=0).fit(shares.rest.X),
    "ant": lw.ANT(teachers, student=student, random_state=0).fit(shares.rest.X),
    "labelled": student.fit(shares.rest.X, shares.rest.Y),
}
scores = {}
for name, model in models.items():
    found = lw.evaluate(model, test.select_labels(list(model.label_names_)))
    scores[name] = found["map"]
    print(f"{name:9} mAP {found['map']:.3f}, example F1 {found['f1_example']:.3f}")

figure, axes = plt.subplots(figsize=(5, 3.2))
axes.bar(list(scores), list(scores.values()), color=["grey", "C0", "C0", "C0", "grey"])
axes.set(ylabel="mAP, test rows", ylim=(0.3, None))
plt.show()
