"""Kinds of training: what a method is given, and what is scored."""

from dataclasses import replace

import numpy as np
import pytest
from bench_data import small_suite

from labelweave.base import MultiLabelClassifier
from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.bench.kinds import kind_module
from labelweave.bench.running import fitting
from labelweave.bench.running.cell_data import load
from labelweave.bench.running.plan import all_cells, make_plan
from labelweave.bench.suite import DataEntry, MethodEntry, ScenarioEntry
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.nn.session import TrainingSession


@pytest.fixture
def fitted_parts(monkeypatch):
    """The parts that each fit was given."""
    seen = []
    fit = fitting.fit

    def watched(cell, parts, **more):
        seen.append(parts)
        return fit(cell, parts, **more)

    monkeypatch.setattr(fitting, "fit", watched)
    return seen


def partial_suite(folder, options=None, method=("MLkNN", "mlknn"), **settings):
    name, id, *more = method
    return small_suite(
        folder,
        seeds=(0,),
        names=("one",),
        kind="partial",
        methods=(MethodEntry(name, id, *more, options=options or {}),),
        scenarios=(ScenarioEntry("s", settings=settings),),
        protocols=(EvaluationProtocol("honest", threshold="cardinality"),),
    )


def run_first(suite):
    cell = make_plan(suite).cells[0]
    return kind_module(suite.kind).run(cell, load(cell.data))


def n_positives(part):
    return int(part.Y.counts()[0].sum())


def test_positives_are_hidden_from_all_rows_but_the_test_rows(tmp_path, fitted_parts):
    run_first(partial_suite(tmp_path, hide=0.0))
    run_first(partial_suite(tmp_path, hide=0.5))
    complete, half = fitted_parts
    assert n_positives(half.train) / n_positives(complete.train) == pytest.approx(0.5, abs=0.06)
    assert n_positives(half.test) == n_positives(complete.test)
    assert np.array_equal(half.train.X, complete.train.X)


def test_methods_for_partial_labels_are_fitted_to_the_same_rows(tmp_path, monkeypatch):
    """All get all rows; only what stops early holds validation rows out, and out of the same."""
    fitted, learnt = [], []
    fit, train = MultiLabelClassifier.fit, TrainingSession.train

    def watched_fit(model, X, y, **more):
        fitted.append((np.asarray(X), more.get("validation")))
        return fit(model, X, y, **more)

    def watched_train(session, *arguments, **more):
        learnt.append(np.asarray(session.X))
        return train(session, *arguments, **more)

    monkeypatch.setattr(MultiLabelClassifier, "fit", watched_fit)
    monkeypatch.setattr(TrainingSession, "train", watched_train)
    small = {"base__hidden": [8], "base__epochs": 2}
    methods = [
        ("wan", {}),
        ("cls", {"tau_h": 0.1}),
        ("cls+", {}),
        ("co-teaching", {"noise_rate": 0.1}),
    ]
    for id, settings in methods:
        run_first(partial_suite(tmp_path, method=(id, id, {**small, **settings}), hide=0.5))
        np.testing.assert_array_equal(learnt[-1], fitted[-1][0])
    run_first(partial_suite(tmp_path, method=("an", "an", small), hide=0.5))
    rows = {tuple(row) for row in fitted[-1][0]}
    assert len(learnt[-1]) == pytest.approx(0.8 * len(fitted[-1][0]), abs=1)
    assert all(tuple(row) in rows for row in learnt[-1])
    for X, validation in fitted:
        np.testing.assert_array_equal(X, fitted[0][0])
        assert validation is None


def test_the_true_rate_and_the_published_one(tmp_path, fitted_parts, monkeypatch):
    small = {"base__hidden": [8], "base__epochs": 2}
    suite = partial_suite(tmp_path, {"tau_h": "true"}, ("CLS", "cls", small), hide=0.5)
    models = []
    fit = fitting.fit
    monkeypatch.setattr(fitting, "fit", lambda *a, **k: models.append(fit(*a, **k)) or models[-1])
    run_first(suite)
    observed = fitted_parts[-1].train.Y.to_numpy()
    train, _ = load(suite.data[0]).split(random_state=0)
    expected = ((train.Y.to_numpy() == 1) & (observed == 0)).sum() / (observed == 0).sum()
    assert models[-1][0].tau_h_ == pytest.approx(expected)
    cell = all_cells(partial_suite(tmp_path, {"tau_h": "published"}, ("CLS", "cls"), hide=0.5))[0]
    voc = replace(cell, data=DataEntry("pascal-voc-2007"))
    assert kind_module("partial")._tau_h(voc, None, None) == 0.003


def test_one_positive_a_row(tmp_path, fitted_parts):
    run_first(partial_suite(tmp_path, single=True))
    per_row = np.asarray(fitted_parts[0].train.Y.positive().sum(axis=1)).ravel()
    assert per_row.max() == 1
    assert np.asarray(fitted_parts[0].test.Y.positive().sum(axis=1)).max() > 1


def test_what_is_not_annotated_is_negative_or_unknown(tmp_path, fitted_parts):
    run_first(partial_suite(tmp_path, hide=0.5))
    assert fitted_parts[0].train.Y.n_unknown == 0
    cell = all_cells(partial_suite(tmp_path, {"unannotated": "unknown"}, hide=0.5))[0]
    part = kind_module("partial")._hidden(load(cell.data), cell)
    values = part.Y.to_numpy()
    assert not (values == 0).any()
    assert (values == 1).any()


def test_hidden_positives_of_data_with_blanks_are_blank(tmp_path):
    """A zero there is a checked negative, which a hidden positive must not become."""
    for options in ({}, {"unannotated": "unknown"}):
        cell = all_cells(partial_suite(tmp_path, options, hide=0.5))[0]
        data = load(cell.data)
        values = data.Y.to_numpy().copy()
        values[:5, 0] = np.nan
        data = replace(data, Y=as_labels(values, names=data.label_names))
        hidden = kind_module("partial")._hidden(data, cell).Y.to_numpy()
        np.testing.assert_array_equal(hidden == 0, values == 0)
        n_hidden = (values == 1).sum() - (hidden == 1).sum()
        assert np.isnan(hidden).sum() == 5 + n_hidden > 5
        cell = replace(cell, options={"tau_h": "true"})
        share = kind_module("partial")._tau_h(cell, as_labels(hidden), data.Y)
        assert share == pytest.approx(n_hidden / (5 + n_hidden))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("supervised", {"scenario": {"hide": 0.5}}, "hide"),
        ("supervised", {"options": {"unannotated": "unknown"}}, "unannotated"),
        ("partial", {"scenario": {"hide": 0.5, "single": True}}, "all but one"),
        ("partial", {"options": {"unannotated": "gone"}}, "'negative' or 'unknown'"),
        ("partial", {"options": {"tau_h": 0.1}}, "'true' or 'published'"),
        ("transfer", {"scenario": {}}, "names its source"),
    ],
)
def test_settings_that_a_kind_does_not_know_are_refused(suite, kind, change, message):
    method = replace(suite.methods[0], options=change.get("options", {}))
    scenario = ScenarioEntry("s", settings=change.get("scenario", {}))
    wrong = replace(suite, kind=kind, methods=(method,), scenarios=(scenario,))
    with pytest.raises(InputError, match=message):
        make_plan(wrong)


def test_an_encoder_of_other_labels_is_probed(tmp_path, fitted_parts):
    small = {"hidden": [8], "pretrain_epochs": 1, "pretrain_steps": 2, "epochs": 2}
    suite = small_suite(
        tmp_path,
        seeds=(0,),
        names=("one",),
        kind="transfer",
        methods=(
            MethodEntry("MulSupCon", "mulsupcon", settings={**small, "mode": "linear-probe"}),
        ),
        scenarios=(ScenarioEntry("s", settings={"source": "other labels"}),),
    )
    outcome = run_first(suite)
    source = set(load(suite.data[0]).label_names) - set(fitted_parts[-1].train.label_names)
    assert len(source) == 1  # of three labels one teaches the encoder, two are probed
    assert len(fitted_parts[-1].train.label_names) == 2
    assert outcome.scores["map"] is not None


def test_curves_and_label_similarities_are_kept_where_a_method_has_them(tmp_path):
    small = {"encoder": [8], "label_encoder": [8], "decoder": [8], "embedding_size": 4, "epochs": 3}
    suite = small_suite(
        tmp_path,
        seeds=(0,),
        names=("one",),
        methods=(MethodEntry("C-GMVAE", "c-gmvae", settings=small), MethodEntry("BR", "br")),
        keep=("test_curve:map", "label_similarity"),
        protocols=(EvaluationProtocol("honest"),),
    )
    cells = make_plan(suite).cells
    data = load(suite.data[0])
    outcome = kind_module("supervised").run(cells[0], data)
    assert len(outcome.history["test_map"]) == 3
    similarity = outcome.artifacts["label_similarity"]
    assert similarity["names"] == ["red", "blue", "round"]
    assert np.shape(similarity["values"]) == (3, 3)
    plain = kind_module("supervised").run(cells[1], data)
    assert plain.history is None
    assert plain.artifacts == {}


def test_a_curve_does_not_change_the_run(tmp_path):
    mlp = MethodEntry("MLP", "mlp", settings={"hidden": [8], "epochs": 4})
    plain = small_suite(tmp_path, seeds=(0,), names=("one",), methods=(mlp,))
    watched = replace(plain, keep=("test_curve:map",))
    first, second = run_first(plain), run_first(watched)
    assert first.scores == second.scores
    assert first.history["loss"] == second.history["loss"]
    assert "test_map" not in first.history


def test_what_cannot_be_kept_is_told(suite):
    cell = make_plan(replace(suite, keep=("diary",))).cells[0]
    with pytest.raises(InputError, match="'diary' cannot be kept"):
        kind_module("supervised").run(cell, load(cell.data))


@pytest.mark.data
def test_texts_get_words_as_features(data_home):
    from labelweave.bench.running.plan import Quick
    from labelweave.bench.suite import load_suite
    from labelweave.bench.suite_selection import select

    suite = select(load_suite("c-gmvae-1"), ["reuters21578", "br", "honest"])
    cell = make_plan(suite, quick=Quick()).cells[0]
    outcome = kind_module("supervised").run(cell, load(cell.data))
    assert outcome.scores["f1_micro"] > 0


def test_cuts_are_chosen_on_rows_the_model_did_not_learn_from(tmp_path, fitted_parts, monkeypatch):
    """MLkNN has not seen the validation rows; Weave has, and judges all its rows out of fold."""
    seen = []
    real = fitting.score_test_rows

    def watched(protocol, choosing, test, *args, **options):
        seen.append(choosing)
        return real(protocol, choosing, test, *args, **options)

    monkeypatch.setattr(fitting, "score_test_rows", watched)
    methods = (MethodEntry("a", "mlknn"), MethodEntry("b", "weave", {"members": ["mlknn"]}))
    honest = (EvaluationProtocol("honest", test_size=0.3),)
    suite = small_suite(tmp_path, seeds=(0,), names=("one",), methods=methods, protocols=honest)
    cells = make_plan(suite).cells
    for cell in cells:
        kind_module("supervised").run(cell, load(cell.data))
    parts = fitted_parts[0]
    both = np.concatenate([parts.train.Y.to_numpy(), parts.validation.Y.to_numpy()])
    expected = {"mlknn": parts.validation.Y.to_numpy(), "weave": both}
    for cell, (labels, probabilities) in zip(cells, seen, strict=True):
        np.testing.assert_array_equal(labels.to_numpy(), expected[cell.method])
        assert probabilities.shape == labels.shape
