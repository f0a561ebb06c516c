"""CFL, AKA and FKA: hidden layers, objectives, and errors for teachers without layers."""

import numpy as np
import pytest
import torch
from scattered_data import easy_data, small_chain, small_student
from torch import nn

import labelweave as lw
from labelweave.dependent.ofcc import OFCCTask
from labelweave.dependent.ofcc_network import OrderFreeChain
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.metrics import hamming_loss
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import SupervisedTask
from labelweave.scattered._amalgamation import student as student_module
from labelweave.scattered._amalgamation.layerwise import TeacherLayers, layers_of
from labelweave.scattered.aka import AKA, AKATask
from labelweave.scattered.cfl import CFL, SIGMAS, CFLTask, mmd
from labelweave.scattered.fka import FKA, FKATask
from labelweave.scattered.teacher import Teacher

METHODS = (CFL, AKA, FKA)
SETTINGS = {"epochs": 30, "lr": 1e-2, "dropout": 0.0, "weight_decay": 1e-4}


@pytest.fixture(scope="module")
def perceptrons():
    X, Y = easy_data()
    make = {"hidden": (12, 8), "random_state": 0, **SETTINGS}
    one = lw.make("mlp", **make).fit(X[:200], lw.as_labels(Y[:200, :3], names=list("abc")))
    two = lw.make("mlp", **make).fit(X[200:400], lw.as_labels(Y[200:400, 2:], names=list("cde")))
    return X[400:], Y[400:], [Teacher(one, name="one"), Teacher(two, name="two")]


def test_layers_of_a_perceptron(perceptrons):
    _, _, (one, _) = perceptrons
    network = one.model.network_
    layers = layers_of(network)
    x = torch.randn(5, 12)
    hidden = layers.hidden(x)
    assert [h.shape[1] for h in hidden] == layers.widths(12) == [12, 8]
    for depth in range(2):
        assert torch.allclose(layers.resume(depth, hidden[depth]), network(x), atol=1e-6)


@pytest.mark.parametrize("encoder", [(), (7,)])
def test_layers_of_a_chain(encoder):
    X, Y = easy_data(100)
    network = small_chain(X, Y, encoder=encoder, epochs=2).network_
    layers = layers_of(network)
    x = torch.randn(6, 12)
    assert layers.depth == len(encoder) + 1
    first_logits = network.run(x, all_steps=True).steps[0]
    for depth, hidden in enumerate(layers.hidden(x)):
        assert torch.allclose(layers.resume(depth, hidden), first_logits, atol=1e-5)


def test_mmd_against_the_definition():
    a, b = torch.randn(7, 3), torch.randn(5, 3)

    def kernel(x, y):
        square = float(((x - y) ** 2).sum())
        return sum(np.exp(-square / (2 * sigma**2)) for sigma in SIGMAS)

    def mean(xs, ys):
        return np.mean([kernel(x, y) for x in xs for y in ys])

    assert mmd(a, b).item() == pytest.approx(mean(a, a) + mean(b, b) - 2 * mean(a, b), abs=1e-4)


def objective(network, loss="final"):
    """The objective of the student that has this network."""
    if isinstance(network, OrderFreeChain):
        return OFCCTask(network, loss, {})
    return SupervisedTask(network, bce, {}, name="bce")


@pytest.fixture
def parts(easy):
    X, _, teachers = easy
    layers = [
        TeacherLayers(teachers[0], np.array([0, 1, 2]), X),
        TeacherLayers(teachers[1], np.array([1, 2, 3, 4]), X),
    ]
    torch.manual_seed(0)
    network = lw.make("ofcc", hidden_size=10)._build_network(12, 5)
    x = torch.randn(6, 12)
    rows = torch.tensor([3, 1, 4, 15, 9, 2])
    return layers, network, Batch(x, torch.rand(6, 5), rows)


def test_the_layers_of_teachers_are_those_of_their_networks(easy):
    X, _, (teacher, _) = easy
    layers = TeacherLayers(teacher, np.arange(3), X)
    model = teacher.model
    scaled = model.scaling_.apply(torch.tensor(X, dtype=torch.float32))
    with torch.no_grad():
        expected = layers_of(model.network_).hidden(scaled)[-1]
    assert torch.allclose(layers.hidden[-1], expected, atol=1e-5)


@pytest.mark.parametrize("loss", ["final", "every-step"])
@pytest.mark.parametrize("task", [AKATask, CFLTask, FKATask])
def test_the_student_has_its_own_objective_beside_the_layers(parts, task, loss):
    layers, network, batch = parts
    own = objective(network, loss).train()
    terms = task(objective(network, loss), layers, 100, 12).train().losses(batch, None)
    assert terms["bce"].item() == pytest.approx(own.losses(batch, None)["bce"].item())
    assert len(terms) > 1


def test_fka_compares_the_predictions_of_each_teacher(parts):
    layers, network, batch = parts
    task = FKATask(objective(network), layers, 100, 12).train()
    terms = task.losses(batch, None)
    expected = 0.0
    for teacher, adapters in zip(layers, task.adapt, strict=True):
        h = layers_of(network).hidden(batch.x)[0]
        ours = torch.sigmoid(teacher.network.head(adapters[0](h)))
        theirs = torch.sigmoid(teacher.network.head(teacher.hidden[0][batch.rows]))
        expected += nn.functional.binary_cross_entropy(ours, theirs).item() / 2
    assert terms["replace"].item() == pytest.approx(expected, abs=1e-5)
    held_out = task.eval().layer_losses(batch, layers_of(network).hidden(batch.x), batch.rows + 100)
    assert task.losses(batch, None)["replace"].item() == pytest.approx(held_out["replace"].item())


def test_aka_bridges_to_each_layer(parts):
    layers, network, batch = parts
    task = AKATask(objective(network), layers, 100, 12).train()
    h = layers_of(network).hidden(batch.x)[0]
    expected = 0.5 * sum(
        ((bridges[0](h) - teacher.hidden[0][batch.rows]) ** 2).mean().item()
        for teacher, bridges in zip(layers, task.bridge, strict=True)
    )
    assert task.losses(batch, None)["bridge"].item() == pytest.approx(expected, rel=1e-4)


def test_cfl_terms(parts):
    layers, network, batch = parts
    task = CFLTask(objective(network), layers, 100, 12).train()
    unit = nn.functional.normalize
    h = layers_of(network).hidden(batch.x)[-1]
    ours = unit(task.extract(task.align(h)), eps=1e-6)
    discrepancy = decoded = 0.0
    for k, teacher in enumerate(layers):
        features = teacher.hidden[-1][batch.rows]
        common = task.extract(task.align_teacher[k](features))
        discrepancy += mmd(ours, unit(common, eps=1e-6)).item()
        decoded += ((task.decode[k](common) - features) ** 2).mean().item()
    terms = task.losses(batch, None)
    assert terms["mmd"].item() == pytest.approx(discrepancy, rel=1e-4)
    assert terms["decode"].item() == pytest.approx(decoded, rel=1e-4)


def test_each_layer_of_deep_networks_is_compared(perceptrons):
    X, _, teachers = perceptrons
    columns = np.array([0, 1, 2]), np.array([2, 3, 4])
    layers = [TeacherLayers(t, c, X) for t, c in zip(teachers, columns, strict=True)]
    torch.manual_seed(0)
    network = lw.make("mlp", hidden=(10, 6), dropout=0.0, norm=None)._build_network(12, 5)
    batch = Batch(torch.randn(6, 12), torch.rand(6, 5), torch.tensor([3, 1, 4, 15, 9, 2]))
    first, last = layers_of(network).hidden(batch.x)
    bridge = AKATask(objective(network), layers, 100, 12)
    replace = FKATask(objective(network), layers, 100, 12)
    similar = unchanged = 0.0
    for k, (teacher, layer) in enumerate(zip(teachers, layers, strict=True)):
        whole = teacher.model.network_
        theirs = [h[batch.rows] for h in layer.hidden]
        for depth, ours in enumerate((first, last)):
            similar += ((bridge.bridge[k][depth](ours) - theirs[depth]) ** 2).mean().item() / 2
        logits = whole[1](theirs[1])
        replaced = [  # the student's first layer goes through the teacher's second one
            whole[1](layers_of(whole).layers[1](replace.adapt[k][0](first))),
            whole[1](replace.adapt[k][1](last)),
        ]
        for output in replaced:
            target = torch.sigmoid(logits)
            unchanged += nn.functional.binary_cross_entropy_with_logits(output, target).item() / 2
    assert bridge.losses(batch, None)["bridge"].item() == pytest.approx(similar, rel=1e-4)
    assert replace.losses(batch, None)["replace"].item() == pytest.approx(unchanged, rel=1e-4)


@pytest.mark.parametrize("cls", METHODS)
def test_they_learn_from_perceptrons(cls, perceptrons):
    X, Y, teachers = perceptrons
    student = lw.make("mlp", hidden=(10, 6), **SETTINGS)
    model = cls(teachers, student=student, random_state=0).fit(X)
    assert hamming_loss(Y, model.predict(X)) < 0.85 * hamming_loss(Y, np.zeros_like(Y))


@pytest.mark.parametrize("cls", METHODS)
def test_a_black_box_is_refused_before_it_predicts(cls, easy):
    X, _, (one, two) = easy

    def never(X):
        raise AssertionError("predicted")

    box = Teacher(never, two.labels, name="box")
    with pytest.raises(
        InputError, match=f"{cls.__name__} uses the hidden layers of .*'box' has none"
    ):
        cls([one, box]).fit(X)


@pytest.mark.parametrize("cls", [AKA, FKA])
def test_depths_must_be_equal(cls, easy, perceptrons):
    X, _, (one, _) = easy
    _, _, (deep, other) = perceptrons
    with pytest.raises(InputError, match="'first' has 1 hidden layers and teacher 'one' has 2"):
        cls([one, deep]).fit(X)
    with pytest.raises(InputError, match="the teachers have 2 hidden layers and the student has 1"):
        cls([deep, other], student=small_student()).fit(X)


@pytest.mark.parametrize("cls", METHODS)
def test_a_student_without_layers_is_refused(cls, easy):
    X, _, teachers = easy
    with pytest.raises(InputError, match="is an OFCC or an MLP with cross-entropy, not MLkNN"):
        cls(teachers, student=lw.make("mlknn")).fit(X)


def test_the_task_has_the_learning_rate_of_the_student_that_is_trained(easy, monkeypatch):
    X, _, teachers = easy
    rates = []

    class WatchedTask(FKATask):
        def __init__(self, *args):
            super().__init__(*args)
            rates.append(self.plan["lr"])

    monkeypatch.setattr(FKA, "_task", WatchedTask)
    monkeypatch.setattr(student_module, "_is_constant", lambda *_: True)
    with pytest.warns(LabelweaveWarning, match="trained again"):
        FKA(teachers, student=small_student(epochs=1), random_state=0).fit(X)
    assert rates == pytest.approx([0.01, 0.003])
