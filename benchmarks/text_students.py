"""A student of text models with tuned thresholds, compared with the union of these models.

Of the official training rows (10,000 at random, where there are more) the teachers have 70 %, and
half of their labels are shared; each is what `labelweave train --method br` makes of its rows. The
student has the texts of the others. All are scored on the official test rows.

    python benchmarks/text_students.py --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import labelweave as lw
from labelweave.data.scenarios import share_among_teachers
from labelweave.metrics import f1, mean_average_precision, zero_one_loss
from labelweave.pipeline.recipe import Recipe

MOST_ROWS = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["reuters21578", "debtags"])
    parser.add_argument("--teachers", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # labels that are rare in a share of the rows
    for name in options.datasets:
        rows, test = lw.load_dataset(name).split()
        for n_teachers in options.teachers:
            for seed in options.seeds:
                kept = np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS]
                shares = share_among_teachers(
                    rows[np.sort(kept)], n_teachers, overlap=0.5, teacher_rows=0.7,
                    random_state=seed,
                )  # fmt: skip
                recipe = Recipe.checked("br", {}, seed=seed)
                teachers = [
                    lw.Teacher(recipe.make(part.data).fit(part.data.X, part.data.Y), name=f"t{i}")
                    for i, part in enumerate(shares.teachers)
                ]
                cuts = ", ".join(f"{teacher.thresholds[0]:.2f}" for teacher in teachers)
                print(f"{name}, {n_teachers} teachers, draw {seed}, thresholds {cuts}", flush=True)
                of_union = None
                for model in (
                    lw.TeacherUnion(teachers, integrate="mean-logit", match="exact"),
                    lw.SmoothedUnion(teachers, match="exact", random_state=seed),
                    lw.DistilledUnion(teachers, match="exact", random_state=seed),
                ):
                    start = time.process_time()
                    p = model.fit(shares.rest.X).predict_proba(test.X)
                    predicted = model.threshold_.apply(p)
                    Y = test.Y.select(tuple(model.label_names_))
                    map_ = mean_average_precision(Y, p)
                    of_union = of_union or map_
                    print(
                        f"  {type(model).__name__:15s} "
                        f"subset loss {zero_one_loss(Y, predicted):.3f}, "
                        f"micro F1 {f1(Y, predicted, average='micro'):.3f}, mAP {map_:.3f}, "
                        f"{map_ / of_union:.3f} of the union's; "
                        f"{time.process_time() - start:.0f} CPU s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
