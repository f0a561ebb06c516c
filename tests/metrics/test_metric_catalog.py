"""Metrics by name."""

import subprocess
import sys

import numpy as np
import pytest

import labelweave.metrics as lwm
from labelweave.exceptions import InputError
from labelweave.metrics import METRICS, get_metric

PROMISED = """subset_accuracy zero_one_loss hamming_loss hamming_accuracy f1_example f1_micro
f1_macro precision_example precision_micro precision_macro recall_example recall_micro
recall_macro jaccard_example jaccard_micro jaccard_macro cf1 of1 map ap_micro ranking_loss
one_error coverage lrap precision@5 ndcg@3 recall@10 psp@1 psndcg@5 auc_macro auc_micro ece"""


@pytest.mark.parametrize("name", PROMISED.split())
def test_every_promised_name(name):
    metric = get_metric(name)
    assert metric.name == name
    assert metric.needs in ("pred", "score")
    assert metric.sign == (1 if metric.greater_is_better else -1)


def test_losses_are_known_as_losses():
    losses = {name for name, metric in METRICS.items() if not metric.greater_is_better}
    assert losses == {
        "zero_one_loss",
        "hamming_loss",
        "ranking_loss",
        "one_error",
        "coverage",
        "ece",
        "ece_macro",
    }


def test_k_reaches_the_function():
    Y_true, Y_score = [[1, 1, 0]], [[0.1, 0.5, 0.9]]
    by_k = [get_metric(f"precision@{k}")(Y_true, Y_score=Y_score) for k in (1, 2, 3)]
    assert by_k == pytest.approx([0, 1 / 2, 2 / 3])
    assert get_metric("nDCG@10").label == "nDCG@10"


def test_spelling_is_free_in_case_only():
    assert get_metric("mAP") is METRICS["map"]
    with pytest.raises(InputError, match="did you mean 'hamming_loss'"):
        get_metric("haming_loss")
    with pytest.raises(InputError, match="it is one of subset_accuracy"):
        get_metric("qqqq")
    with pytest.raises(InputError, match="needs a number for k: precision@5"):
        get_metric("precision@k")
    with pytest.raises(InputError, match="did you mean 'precision@k'"):
        get_metric("precision@0")
    with pytest.raises(InputError, match="no metric 'f1_example@3'"):
        get_metric("f1_example@3")


def test_fixed_parameters():
    Y_true, Y_pred = [[0, 0], [1, 0]], [[0, 0], [1, 1]]
    metric = get_metric("f1_example", zero_division=np.nan)
    assert metric(Y_true, Y_pred=Y_pred) == pytest.approx(2 / 3)
    assert get_metric(metric) is metric
    assert get_metric("f1_example")(Y_true, Y_pred=Y_pred) == pytest.approx(1 / 3)


def test_what_is_missing_is_said():
    with pytest.raises(InputError, match="f1_micro needs predicted label sets: pass Y_pred="):
        get_metric("f1_micro")([[1]], Y_score=[[1]])
    with pytest.raises(InputError, match="map needs scores: pass Y_score="):
        get_metric("map")([[1]], Y_pred=[[1]])
    with pytest.raises(InputError, match="psp@1 needs propensities="):
        get_metric("psp@1")([[1]], Y_score=[[1]])


def test_every_function_of_the_table_is_public():
    public = [getattr(lwm, name) for name in dir(lwm) if not name.startswith("_")]
    assert all(any(metric.function is one for one in public) for metric in METRICS.values())


def test_import_is_light():
    code = (
        "import labelweave.metrics, sys; print({'torch', 'pandas', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
