"""Several processes and other precisions through Lightning Fabric."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from labelweave.dependent.mlp import MLP
from labelweave.exceptions import InputError
from labelweave.nn.distributed import Engine, find_device, make_engine

pytest.importorskip("lightning_fabric")

# Batches of 11 rows: shares of the two processes differ in size. Few rows and epochs, because each
# step waits for the other process several times, long on a busy machine.
SCRIPT = """
import os, sys
import numpy as np
import torch
from torch import nn
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from labelweave.dependent.mlp import MLP
from labelweave.dependent.mulsupcon import MulSupCon
from labelweave.nn.batches import Batches
from labelweave.nn.distributed import make_engine
from labelweave.nn.randomness import forked_rng
from labelweave.nn.process_rows import gather_rows
from labelweave.nn.task import Task, make_plan
from labelweave.nn.training import LoopSettings, train
from labelweave.labels import as_labels
from labelweave.methods import get_class, make


class Contrast(Task):
    '''A loss over all pairs of rows of the batch, as contrastive learning has.'''

    def __init__(self, network):
        super().__init__(network)
        self.register_buffer("seen", torch.zeros(10))

    def losses(self, batch, info):
        z = gather_rows(self.network(batch.x))
        y = gather_rows(batch.y)
        return {"pairs": ((z @ z.T - y @ y.T) ** 2).mean()}

    def after_step(self, batch, info):
        self.seen += gather_rows(batch.x).sum(dim=0)

    def optimizers(self, n_steps):
        return [make_plan(self.network.parameters(), n_steps=n_steps, lr=0.01)]


def models(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 10)).astype(np.float32)
    Y = (X @ rng.normal(size=(10, 4)) > 0.5).astype(np.float32)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    out = {}
    for norm in (None, "batch"):
        model = MLP(hidden=(16, 16), dropout=0.3, norm=norm, epochs=2, batch_size=11, patience=2,
                    clip_norm=1.0, random_state=3, checkpoint=f"{name}-{norm}", lr=0.01)
        model.fit(X, Y)
        out[f"mlp {norm}"] = model.network_.state_dict()
        out[f"history {norm}"] = torch.tensor(
            model.history_.drop(columns="seconds").to_numpy(), dtype=torch.float32)

    model = MulSupCon(hidden=(16,), norm="batch", projection=8, queue_size=32, pretrain_epochs=1,
                      epochs=1, pretrain_steps=None, pretrain_batch_size=11, batch_size=11,
                      min_steps=1, random_state=3)
    out["mulsupcon"] = model.fit(X, Y).network_.state_dict()

    for method in ("c2ae", "mpvae", "rbcc", "ofcc", "c-tran", "lamp", "ml-gcn"):
        options = get_class(method)._test_params() | {"epochs": 1, "batch_size": 11, "patience": 1}
        model = get_class(method)(**options, random_state=3).fit(X, Y)
        out[method] = model.network_.state_dict()

    base = MLP(hidden=(16,), dropout=0.3, epochs=2, batch_size=11, lr=0.01)
    for id, options in (("cls", {"ramp": 1}), ("jocor", {"ramp": 1}), ("role", {}),
                        ("em-apl", {"warmup": 1}), ("ll-cp", {"delta": 0.05})):
        model = make(id, base=base, random_state=3, **options)
        out[id] = model.fit(X, Y).network_.state_dict()

    engine = make_engine()
    with forked_rng(0):
        task = Contrast(nn.Linear(10, 3))
        batches = Batches(X, as_labels(np.nan_to_num(Y)), batch_size=11, rank=engine.rank,
                          world=engine.world)
        train(task, batches, LoopSettings(epochs=1), engine=engine)
    out["contrast"] = task.state_dict()
    out["world"] = engine.world
    out["fabric"] = "lightning_fabric" in sys.modules
    torch.save(out, f"{name}.{os.environ.get('RANK', 'alone')}.pt")


folder = sys.argv[1]
models(f"{folder}/one")  # first, so that the two processes have nothing left to import
config = LaunchConfig(
    min_nodes=1, max_nodes=1, nproc_per_node=2, start_method="fork", rdzv_backend="c10d",
    rdzv_endpoint="127.0.0.1:0", local_addr="127.0.0.1", run_id="test", max_restarts=0)
elastic_launch(config, models)(f"{folder}/two")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, dict]:
    """What one process gives, and each of two processes that torchrun's launcher starts."""
    folder = tmp_path_factory.mktemp("torchrun")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.stem: torch.load(path, weights_only=True) for path in folder.glob("*.pt")}


ALL = [
    *("mlp None", "mlp batch", "mulsupcon", "contrast"),
    *("c2ae", "mpvae", "rbcc", "ofcc", "c-tran", "lamp", "ml-gcn"),
    *("cls", "jocor", "role", "em-apl", "ll-cp"),
]


@pytest.mark.parametrize("what", ALL)
def test_two_processes_give_the_model_of_one(runs, what):
    assert runs["two.0"]["world"] == 2
    assert runs["one.alone"]["world"] == 1
    for name, weights in runs["one.alone"][what].items():
        for rank in (0, 1):
            # Adam divides by the size of a gradient: where it is nearly zero, the order of a sum,
            # which depends on the processor, moves a weight by a small part of a step (1e-3).
            torch.testing.assert_close(
                runs[f"two.{rank}"][what][name], weights, rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize("norm", ["None", "batch"])
def test_two_processes_see_the_same_history(runs, norm):
    histories = [runs[name][f"history {norm}"] for name in ("one.alone", "two.0", "two.1")]
    torch.testing.assert_close(histories[1], histories[2], rtol=0, atol=0)
    torch.testing.assert_close(histories[0], histories[1], rtol=1e-4, atol=1e-4)


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4)).astype(np.float32)
    return X, (X[:, :2] > 0).astype(int)


TORCHRUN = """
import os, sys
import numpy as np
from labelweave.dependent.mlp import MLP

rows = np.load(sys.argv[1])
model = MLP(hidden=(4,), epochs=2, random_state=0).fit(rows["X"], rows["Y"])
np.save(f"{sys.argv[1]}.{os.environ['RANK']}.npy", model.predict_proba(rows["X"]))
"""


def test_torchrun_starts_processes_that_train_the_model_of_one(tmp_path):
    X, Y = data()
    np.savez(tmp_path / "rows.npz", X=X, Y=Y)
    (tmp_path / "train.py").write_text(TORCHRUN)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", tmp_path / "train.py", tmp_path / "rows.npz"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = MLP(hidden=(4,), epochs=2, random_state=0).fit(X, Y).predict_proba(X)
    for rank in (0, 1):
        probabilities = np.load(tmp_path / f"rows.npz.{rank}.npy")
        np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_another_precision(precision):
    X, Y = data()
    options = {"hidden": (4,), "epochs": 2, "lr": 0.05, "patience": None, "random_state": 0}
    model = MLP(precision=precision, **options).fit(X, Y)
    plain = MLP(**options).fit(X, Y)
    probabilities, expected = model.predict_proba(X), plain.predict_proba(X)
    assert next(model.network_.parameters()).dtype == torch.float32
    assert (probabilities != expected).any()
    np.testing.assert_allclose(probabilities, expected, atol=0.02)


def test_a_precision_resumes(tmp_path):
    X, Y = data()
    options = {"hidden": (4,), "patience": None, "random_state": 0, "precision": "64-true"}
    first = MLP(checkpoint=tmp_path, epochs=3, **options).fit(X, Y)
    again = MLP(checkpoint=tmp_path, epochs=3, **options).fit(X, Y)
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))


def test_one_process_works_without_fabric(runs):
    assert runs["one.alone"]["fabric"] is False
    assert runs["two.0"]["fabric"] is True
    assert type(make_engine()) is Engine


def test_devices():
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="there is no device 'fridge'"):
        find_device("fridge")
    if not torch.accelerator.is_available():
        assert find_device("auto") == torch.device("cpu")
        with pytest.raises(InputError, match="no cuda device"):
            MLP(device="cuda").fit(*data())


def test_several_processes_need_a_seed(monkeypatch):
    class Two(Engine):
        world = 2

    monkeypatch.setattr("labelweave.nn.network_spec.make_engine", lambda *_: Two())
    with pytest.raises(InputError, match="several processes needs a seed"):
        MLP(patience=None).fit(*data())
