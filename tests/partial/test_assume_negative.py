"""AN: the plain network with another seed."""

import numpy as np

import labelweave as lw

QUICK = {"hidden": (16,), "epochs": 12, "lr": 2e-2}


def test_assume_negative_is_the_plain_network(data):
    """The same objective as the network's own: a different seed is all that differs."""
    X, Y, _ = data
    assumed = lw.AssumeNegative(lw.MLP(**QUICK), random_state=0, monitor="val_loss").fit(X, Y)
    plain = lw.MLP(**QUICK, random_state=0).fit(X, Y)
    assert np.abs(assumed.predict_proba(X) - plain.predict_proba(X)).mean() < 0.1
