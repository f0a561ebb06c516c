"""The checks themselves: a sound method passes them all, a broken one fails its own."""

from pickle import PicklingError

import broken_methods
import pytest

from labelweave import methods
from labelweave.exceptions import InputError, ModelFolderError
from labelweave.testing import check_estimator, estimator_checks, test_instance

BROKEN = {
    "probabilities_and_label_sets": ["ForgetsALabel", "ReturnsIntegers", "IgnoresTheThreshold"],
    "each_row_is_predicted_by_itself": ["LooksAtOtherRows"],
    "beats_the_label_frequency": ["LearnsNothing"],
    "learns_groups_by_heart": ["LearnsNothing"],
    "score": ["CountsUnknownAsNegative"],
    "one_dimensional_target": ["LearnsNothing"],
    "names_follow_columns": ["SortsLabels"],
    "all_forms_of_y_give_the_same_model": ["IgnoresSparseLabels"],
    "all_forms_of_unknown_give_the_same_model": ["TakesUnstoredForNegative"],
    "unknown_is_not_negative": ["FillsUnknownWith"],
    "unknown_is_not_positive": ["FillsUnknownWithPositive"],
    "a_label_without_known_entry_is_named": ["AcceptsAnyLabel", "LearnsBlankLabelsInSilence"],
    "wrong_labels_are_refused": ["AcceptsAnyLabel"],
    "one_label": ["NeedsTwoLabels"],
    "labels_with_one_state_only": ["DoubtsConstantLabels"],
    "a_label_with_few_known_entries": ["NeedsTwoKnownEntries"],
    "rows_without_labels": ["DropsRowsWithoutLabels"],
    "no_row_with_labels": ["DoubtsConstantLabels"],
    "sparse_equals_dense": ["TreatsSparseDifferently"],
    "forms_of_x": ["TreatsSinglePrecisionDifferently"],
    "nan_and_infinite_x_is_refused": ["AcceptsNaN"],
    "extreme_scales": ["OverflowsOnLargeValues"],
    "large_numbers": ["OverflowsFarFromTheTrainingRows", "ClipsInSilence"],
    "constant_features": ["DividesByZero"],
    "wrong_width_is_refused": ["AcceptsAnyWidth"],
    "few_rows": ["FailsOnOneRow"],
    "mixed_tables": ["DropsMixedColumns", "MatchesColumnsByPosition"],
    "inputs_are_left_alone": ["WritesToItsInput"],
    "read_only_memory_maps": ["WritesToItsInput"],
    "same_seed_same_result": ["IgnoresTheSeed"],
    "different_seed": ["HasOneSeed"],
    "any_number_of_jobs": ["SeedsByJobs"],
    "global_generators_are_untouched": ["UsesTheGlobalGenerator", "UsesPythonsGenerator"],
    "result_does_not_depend_on_global_generators": [
        "UsesTheGlobalGenerator",
        "UsesPythonsGenerator",
    ],
    "parameters": ["HasNoThreshold"],
    "refit_forgets": ["StartsWarm", "KeepsOldAttributes"],
    "pickle": ["CannotBePickled"],
    "save_and_load": ["SavesHalf", "KeepsPrivateState"],
    "save_and_load_of_classes": ["ForgetsTheTypeOfClasses"],
    "documentation": ["SaysNothing"],
    "thresholds": ["IgnoresTheThreshold"],
    "validation_rows": ["IgnoresValidationNames"],
    "pipeline_and_search": ["RefusesUnknown"],
    "out_of_fold_predictions": ["LearnsNothing"],
    "scikit_learns_own_cross_validation": ["ForgetsALabel"],
    "known_labels_stay": ["ForgetsKnown"],
    "forms_of_known": ["TakesKnownByPosition"],
    "wrong_known_is_refused": ["AcceptsAnyKnown"],
    "known_labels_help": ["IgnoresKnown"],
    "weights_of_rows": ["IgnoresWeights", "CountsRowsOfWeightZero"],
}
# Where the method itself raises, before the check can say what is wrong.
OWN_ERRORS = {
    ("a_label_with_few_known_entries", "NeedsTwoKnownEntries"): InputError,
    ("constant_features", "DividesByZero"): InputError,
    ("extreme_scales", "OverflowsOnLargeValues"): InputError,
    ("few_rows", "FailsOnOneRow"): ZeroDivisionError,
    ("large_numbers", "OverflowsFarFromTheTrainingRows"): InputError,
    ("mixed_tables", "MatchesColumnsByPosition"): InputError,
    ("read_only_memory_maps", "WritesToItsInput"): ValueError,
    ("pipeline_and_search", "RefusesUnknown"): ZeroDivisionError,
    ("pickle", "CannotBePickled"): (AttributeError, PicklingError),
    ("save_and_load", "KeepsPrivateState"): ModelFolderError,
}


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """The classes of the module are methods, as if a package had brought them."""
    plugins = [
        methods.Method(name, "plug-in", "broken_methods", name, "broken on purpose")
        for name, value in vars(broken_methods).items()
        if isinstance(value, type) and issubclass(value, broken_methods.Sound)
    ]
    monkeypatch.setattr(methods, "_plugin_methods", lambda: plugins)
    methods._methods.cache_clear()
    yield
    methods._methods.cache_clear()


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(*check, id=f"{type(sound).__name__}-{check[0]}")
        for sound in (
            broken_methods.Sound(),
            broken_methods.SoundWithKnown(),
            broken_methods.SoundWithWeights(),
        )
        for check in estimator_checks(sound)
    ],
)
def test_a_sound_method_passes(name, check):
    check()


@pytest.mark.parametrize(
    ("name", "broken"), [(name, broken) for name, all_ in BROKEN.items() for broken in all_]
)
def test_a_broken_method_fails(name, broken):
    checks = dict(estimator_checks(getattr(broken_methods, broken)()))
    with pytest.raises(OWN_ERRORS.get((name, broken), AssertionError)):
        checks[name]()


def test_every_check_has_a_method_that_breaks_it():
    sound = (broken_methods.SoundWithKnown(), broken_methods.SoundWithWeights())
    assert {name for one in sound for name, _ in estimator_checks(one)} == set(BROKEN)


def test_check_estimator_says_which_check_failed():
    with pytest.raises(AssertionError) as caught:
        check_estimator(broken_methods.LearnsNothing())
    assert "'beats_the_label_frequency' of LearnsNothing()" in caught.value.__notes__[0]


def test_check_estimator_runs_scikit_learns_checks_too():
    check_estimator(broken_methods.Sound())

    with pytest.raises(AssertionError, match="more"):
        check_estimator(broken_methods.SetsMoreThanItsParameters())


def test_small_settings_are_used_where_a_class_gives_them():
    class Small(broken_methods.Sound):
        @classmethod
        def _test_params(cls):
            return {"threshold": 0.25}

    assert test_instance(Small).threshold == 0.25
    assert test_instance(broken_methods.Sound).threshold == 0.5
