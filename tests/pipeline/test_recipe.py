"""From a method's id to an estimator: every method, with and without a progress bar."""

import pandas as pd
import pytest

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.methods import list_methods
from labelweave.pipeline.recipe import Recipe


@pytest.mark.parametrize("id", [method.id for method in list_methods()])
def test_every_method_can_show_its_progress(id):
    model = Recipe.checked(id, {}, seed=0, verbose=True).make()
    learner = getattr(model, "base", model)
    if capabilities(learner).progress_bar:
        assert learner.verbose == 1


def test_the_network_that_was_chosen_draws_the_bar():
    model = Recipe.checked("cls", {"base": "c-gmvae"}, seed=0, verbose=True).make()
    assert type(model.base).__name__ == "CGMVAE"
    assert model.base.verbose == 1


@pytest.mark.parametrize(
    ("settings", "kind", "reveal"),
    [
        ({"student": "mlp", "student__lr": 0.5}, "MLP", None),
        ({"student": "ofcc", "student__lr": 0.5}, "OFCC", 0.0),
        ({"student__lr": 0.5}, "OFCC", 0.0),
    ],
)
def test_settings_of_a_student_belong_to_the_one_that_was_chosen(settings, kind, reveal):
    student = Recipe.checked("ant", settings, seed=0).make().student
    assert (type(student).__name__, student.lr) == (kind, 0.5)
    assert getattr(student, "reveal", None) == reveal  # a student's labels are only guessed


def test_the_network_of_columns_of_images_is_chosen():
    frame = pd.DataFrame({"photo": ["a.png", "b.png"], "price": [1.0, 2.0]})
    recipe = Recipe.checked("br", {"image__weights": "net.pth"}, seed=0, verbose=False)
    data = Dataset(lw.Table(frame, lw.TableEncoder({"photo": "image"})), [[1], [0]])
    part = data[[0]]
    recipe.make(data)
    assert part.X.unfitted_encoder().image.weights == "net.pth"
    with pytest.raises(InputError, match=r"image__weights is for images, but no column"):
        recipe.make(Dataset(lw.Table(frame), [[1], [0]]))
