"""One student of two teachers

Two teachers know overlapping halves of the labels of yeast and were trained on different rows.
A student learns all labels from unlabelled rows. It is compared with the combined predictions of
its teachers (union), and with a model trained on the true labels of the student's rows.
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
    "ant+": lw.ANTPlus(teachers, student=student, random_state=0).fit(shares.rest.X),
    "labelled": student.fit(shares.rest.X, shares.rest.Y),
}
scores = {}
for name, model in models.items():
    result = lw.evaluate(model, test.select_labels(list(model.label_names_)))
    scores[name] = result["map"]
    print(f"{name:9} mAP {result['map']:.3f}, example F1 {result['f1_example']:.3f}")

figure, axes = plt.subplots(figsize=(5, 3.2))
axes.bar(list(scores), list(scores.values()), color=["grey", "C0", "C0", "C0", "grey"])
axes.set(ylabel="mAP, test rows", ylim=(0.3, None))
plt.show()
