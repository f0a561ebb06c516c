"""From a method's id to an estimator: every method, with and without a progress bar."""

import pytest

from labelweave.assembly.recipe import Recipe
from labelweave.registry import list_methods


@pytest.mark.parametrize("id", [method.id for method in list_methods()])
def test_every_method_can_show_its_progress(id):
    model = Recipe.checked(id, {}, seed=0, verbose=True).make()
    learner = getattr(model, "base", model)
    if learner._draws_a_bar:
        assert learner.verbose == 1


def test_the_network_that_was_chosen_draws_the_bar():
    model = Recipe.checked("cls", {"base": "c-gmvae"}, seed=0, verbose=True).make()
    assert type(model.base).__name__ == "CGMVAE"
    assert model.base.verbose == 1
