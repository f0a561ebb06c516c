"""The contract over methods with a network for images."""

import pytest

import labelweave as lw
from labelweave.images import ResNet
from labelweave.testing import check_estimator, estimator_checks

pytest.importorskip("PIL")
ENCODER = ResNet(size=12, width=4, augment={"flip": 0.0, "crop": 0.9})
MLP = lw.make("mlp", encoder=ENCODER, epochs=8, lr=1e-2, batch_size=16)
MODELS = {
    "mlp": MLP,
    "mulsupcon": lw.make(
        "mulsupcon",
        encoder=ENCODER,
        epochs=8,
        batch_size=16,
        lr=1e-2,
        backbone_lr=1e-2,
        pretrain_epochs=2,
        pretrain_steps=4,
        projection=8,
        queue_size=16,
    ),
    "cls": lw.make("cls", base=MLP, threshold=0.5),
}
CHECKS = [
    pytest.param(check, id=f"{name}-{what}")
    for name, model in MODELS.items()
    for what, check in estimator_checks(model)
]


@pytest.mark.parametrize("check", CHECKS)
def test_contract_of_images(check):
    check()


def test_the_checks_are_those_of_images():
    assert len(CHECKS) == 3 * 6
    assert len(estimator_checks(lw.make("mlp"))) > 20


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_the_whole_contract_runs():
    check_estimator(MLP)
