"""Checkpoints: exact resume after SIGKILL, and refusal of what does not belong to the run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from labelweave.dependent.mlp import MLP
from labelweave.exceptions import InputError
from labelweave.nn.callbacks import Callback
from labelweave.nn.checkpoints import (
    CheckpointError,
    fingerprint,
    read_checkpoint,
    write_checkpoint,
)

# Dropout, batch norm, a schedule, early stopping and clipping: all that has a state. Each fit
# runs in a process of its own, forked from one that has imported everything.
SCRIPT = """
import os, signal, sys
import numpy as np
import torch
from labelweave.dependent.mlp import MLP

folder = sys.argv[1]
replace = os.replace


def fit(checkpoint, out):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 12)).astype(np.float32)
    Y = (X @ rng.normal(size=(12, 4)) > 0.5).astype(int)
    model = MLP(
        hidden=(16, 16), dropout=0.3, norm="batch", schedule="cosine", clip_norm=1.0,
        epochs=8, batch_size=16, patience=6, monitor="val_loss", random_state=7,
        checkpoint=checkpoint, checkpoint_every=0,
    ).fit(X, Y)
    state = {"network": model.network_.state_dict(), "loss": model.history_["loss"].tolist()}
    torch.save(state, out)


def run(checkpoint, out, number=None, before=False):
    '''True if the process was killed just before or after a checkpoint was put in place.'''
    child = os.fork()
    if child == 0:
        written = 0

        def counted(*paths):
            nonlocal written
            written += 1
            if written == number and before:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*paths)
            if written == number:
                os.kill(os.getpid(), signal.SIGKILL)

        os.replace = counted
        fit(checkpoint, out)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


fit(None, f"{folder}/whole.pt")  # here, so that the forks have nothing left to import
moments = [(1, True), (3, False), (8, True), (7, False), (1, False)]
kills = [run(f"{folder}/run", f"{folder}/early.pt", *moment) for moment in moments]
run(f"{folder}/run", f"{folder}/resumed.pt")
print(sum(kills))
"""


def test_killed_runs_end_with_the_weights_of_one_never_killed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
        check=True,
    )
    assert int(done.stdout) == 5
    uninterrupted, resumed = (
        torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("whole", "resumed")
    )
    assert len(uninterrupted["network"]) > 6
    for name, weights in uninterrupted["network"].items():
        assert torch.equal(weights, resumed["network"][name])
    assert uninterrupted["loss"] == resumed["loss"]
    left = [path.name for path in (tmp_path / "run").iterdir() if not path.name.startswith(".")]
    assert left == ["training.ckpt"]


class StopAt(Callback):
    """Ends the process's work at a step, as an error would."""

    def __init__(self, step):
        self.step = step

    def on_step(self, run, loss):
        if run.step == self.step:
            raise KeyboardInterrupt


def toy(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, (X[:, :3] > 0).astype(int)


def small(folder, **changes):
    settings = {"hidden": (8,), "epochs": 6, "batch_size": 8, "random_state": 0, "patience": 3}
    return MLP(checkpoint=folder, checkpoint_every=0, **(settings | changes))


@pytest.mark.parametrize("step", [1, 4, 5, 13])
def test_resuming_within_an_epoch_gives_the_same_history_and_model(tmp_path, step):
    X, Y = toy()
    uninterrupted = small(None).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path, callbacks=[StopAt(step)]).fit(X, Y)
    resumed = small(tmp_path).fit(X, Y)
    np.testing.assert_array_equal(resumed.predict_proba(X), uninterrupted.predict_proba(X))
    columns = ["epoch", "loss", "val_loss"]
    assert resumed.history_[columns].equals(uninterrupted.history_[columns])
    assert resumed.best_epoch_ == uninterrupted.best_epoch_


def test_a_finished_run_is_not_trained_again(tmp_path):
    X, Y = toy()
    first = small(tmp_path).fit(X, Y)
    again = small(tmp_path, callbacks=[StopAt(1)]).fit(X, Y)  # would fail at its first step
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))


@pytest.mark.parametrize("change", ["X", "Y", "lr", "hidden", "random_state", "dropout"])
def test_other_data_or_parameters_are_refused(tmp_path, change):
    X, Y = toy()
    small(tmp_path, epochs=1).fit(X, Y)
    other = {"lr": 0.5, "hidden": (9,), "random_state": 1, "dropout": 0.1}
    if change == "X":
        X = X.copy()
        X[3, 2] += 1e-6
    if change == "Y":
        Y = Y.copy()
        Y[3, 2] = 1 - Y[3, 2]
    changes = {change: other[change]} if change in other else {}
    with pytest.raises(InputError, match="other data, parameters or random_state"):
        small(tmp_path, epochs=1, **changes).fit(X, Y)


def test_a_checkpoint_needs_a_seed(tmp_path):
    with pytest.raises(InputError, match="a checkpoint needs a seed"):
        small(tmp_path, random_state=None).fit(*toy())


def test_a_damaged_or_foreign_file_is_refused_and_left_overs_are_cleared(tmp_path):
    path = tmp_path / "training.ckpt"
    write_checkpoint(path, "run", {"x": torch.ones(300)})
    half = tmp_path / ".training.ckpt.abc.tmp.ckpt"
    half.write_bytes(path.read_bytes()[:200])
    assert read_checkpoint(path, "run")["x"].sum() == 300
    assert not half.exists()
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="damaged"):
        read_checkpoint(path, "run")
    torch.save([1, 2], path)
    with pytest.raises(InputError, match="no checkpoint of labelweave"):
        read_checkpoint(path, "run")


@pytest.mark.skipif(os.name != "posix", reason="no limit on the size of files here")
def test_a_disk_that_is_full_leaves_the_old_checkpoint(tmp_path):
    import resource

    path = tmp_path / "training.ckpt"
    write_checkpoint(path, "run", {"x": 1})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        with pytest.raises(CheckpointError, match=r"cannot be written.*File too large"):
            write_checkpoint(path, "run", {"x": torch.zeros(1000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read_checkpoint(path, "run")["x"] == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_the_address_of_a_function_does_not_matter():
    def make():
        def own_loss(logits, targets):
            return logits

        return own_loss

    assert fingerprint({"loss": make()}) == fingerprint({"loss": make()})
    assert fingerprint({"loss": make()}) != fingerprint({"loss": toy})


def test_code_in_a_checkpoint_is_never_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "touched",))

    path = tmp_path / "training.ckpt"
    torch.save({"format": "labelweave checkpoint 1", "run": "run", "x": Evil()}, path)
    with pytest.raises(InputError, match="damaged or no checkpoint"):
        read_checkpoint(path, "run")
    assert not (tmp_path / "touched").exists()
