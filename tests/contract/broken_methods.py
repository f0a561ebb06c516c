"""A method that keeps the contract, and copies of it that break one rule each."""

import random

import numpy as np
import scipy.sparse as sp

from labelweave.base import MultiLabelClassifier, WeightedClassifier
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix, as_labels


class Sound(MultiLabelClassifier):
    """Weighted least squares on a few random features beside the given ones.

    Parameters
    ----------
    n_jobs
        Changes nothing.
    threshold, validation_fraction, random_state

    Examples
    --------
    None is needed in a test.
    """

    def __init__(self, n_jobs=None, threshold=0.5, validation_fraction=0.2, random_state=None):
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X, Y, validation):
        X = X.toarray() if sp.issparse(X) else X
        self.projection_ = self._generator().normal(size=(X.shape[1], 4))
        self.scale_ = np.abs(X).max() or 1.0
        features, Y = self._features(X), Y.to_numpy(np.float64)
        self.weights_ = np.empty((features.shape[1], Y.shape[1]))
        for j, column in enumerate(Y.T):
            known = ~np.isnan(column)
            some = features[known]
            normal = some.T @ some + 1e-3 * np.eye(some.shape[1])
            self.weights_[:, j] = np.linalg.solve(normal, some.T @ (2 * column[known] - 1))

    def _features(self, X):
        X = (X.toarray() if sp.issparse(X) else X) / self.scale_
        return np.column_stack([X, np.tanh(X @ self.projection_), np.ones(len(X))])

    def _predict_proba(self, X):
        return 1 / (1 + np.exp(-4 * self._features(X) @ self.weights_))


class LearnsNothing(Sound):
    def _predict_proba(self, X):
        return np.full((X.shape[0], self.n_labels_), 0.3)


class ForgetsALabel(Sound):
    def _predict_proba(self, X):
        return super()._predict_proba(X)[:, :2]


class ReturnsIntegers(Sound):
    def predict_proba(self, X):
        return super().predict_proba(X).round().astype(int)


class IgnoresTheThreshold(Sound):
    def predict(self, X):
        return (self.predict_proba(X) >= 0.5).astype(int)


class LooksAtOtherRows(Sound):
    def _predict_proba(self, X):
        probabilities = super()._predict_proba(X)
        return probabilities - probabilities.mean(axis=0) / 4


class CountsUnknownAsNegative(Sound):
    def score(self, X, y, sample_weight=None):
        return super().score(X, np.nan_to_num(y), sample_weight)


class SortsLabels(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y.select(sorted(Y.names)), validation)


class FillsUnknownWith(Sound):
    value = 0.0

    def _fit(self, X, Y, validation):
        filled = np.nan_to_num(Y.to_numpy(), nan=self.value)
        super()._fit(X, LabelMatrix(filled, Y.names), validation)


class FillsUnknownWithPositive(FillsUnknownWith):
    value = 1.0


class TakesUnstoredForNegative(Sound):
    def _fit(self, X, Y, validation):
        values = Y.values.toarray() if Y.is_sparse else Y.values
        super()._fit(X, LabelMatrix(values, Y.names), validation)


class AcceptsAnyLabel(Sound):
    def _checked_targets(self, y):
        y = y.toarray() if sp.issparse(y) else np.array(y, dtype=float)
        return super()._checked_targets(as_labels(np.nan_to_num(np.clip(y, 0, 1))))


class LearnsBlankLabelsInSilence(AcceptsAnyLabel):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.capabilities.blank_labels = True
        return tags


class IgnoresSparseLabels(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y if not Y.is_sparse else as_labels(np.ones(Y.shape)), validation)


class DropsRowsWithoutLabels(Sound):
    def _fit(self, X, Y, validation):
        some = Y.to_numpy().sum(axis=1) != 0
        rows = some if some.any() else slice(None)
        super()._fit(X[rows], Y[rows], validation)


class DoubtsConstantLabels(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y, validation)
        positives, known = Y.counts()
        self.weights_[:, (positives == 0) | (positives == known)] = 0


class NeedsTwoLabels(Sound):
    def _predict_proba(self, X):
        probabilities = super()._predict_proba(X)
        return probabilities.squeeze() if probabilities.shape[1] == 1 else probabilities


class TreatsSparseDifferently(Sound):
    def _predict_proba(self, X):
        return super()._predict_proba(X * 0.9 if sp.issparse(X) else X)


class TreatsSinglePrecisionDifferently(Sound):
    def _predict_proba(self, X):
        return super()._predict_proba(X * 0.9 if X.dtype == np.float32 else X)


class AcceptsNaN(Sound):
    def _checked_features(self, X, *, reset):
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
        return super()._checked_features(np.nan_to_num(X, posinf=1, neginf=1), reset=reset)


class DropsMixedColumns(Sound):
    def _checked_features(self, X, *, reset):
        if hasattr(X, "iloc"):
            X = X.select_dtypes("number").fillna(0)
        return super()._checked_features(X, reset=reset)


class MatchesColumnsByPosition(Sound):
    def _encoded(self, X):
        frame = getattr(X, "frame", X)
        return super()._encoded(frame.set_axis(self.feature_names_in_, axis=1))


class DividesByZero(Sound):
    def _features(self, X):
        with np.errstate(all="ignore"):
            return super()._features(X) / (0 if self.scale_ == 1.0 else 1)


class OverflowsOnLargeValues(Sound):
    def _features(self, X):
        with np.errstate(all="ignore"):
            return super()._features(X) + 0 * np.exp(np.float64(self.scale_))


class OverflowsFarFromTheTrainingRows(Sound):
    def _features(self, X):
        with np.errstate(all="ignore"):
            features = super()._features(X).astype(np.float32) ** 2
            return features - features**2


class ClipsInSilence(Sound):
    def _checked_features(self, X, *, reset):
        X = X.toarray() if sp.issparse(X) else X
        return super()._checked_features(np.clip(X, -1e19, 1e19), reset=reset)


class AcceptsAnyWidth(Sound):
    def _checked_features(self, X, *, reset):
        X = X.toarray() if sp.issparse(X) else np.atleast_2d(np.asarray(X, dtype=float))
        return super()._checked_features(np.resize(X, (max(len(X), 1), 6)), reset=reset)


class NeedsTwoKnownEntries(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y, validation)
        self.weights_[:, Y.counts()[1] < 2] = np.nan


class RefusesUnknown(Sound):
    def _fit(self, X, Y, validation):
        if np.isnan(Y.to_numpy()).any():
            raise ZeroDivisionError
        super()._fit(X, Y, validation)


class ForgetsTheTypeOfClasses(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y, validation)
        self._knows_the_type = True

    def predict(self, X):
        predicted = super().predict(X)
        return predicted if "_knows_the_type" in vars(self) else predicted.astype(object)


class FailsOnOneRow(Sound):
    def _fit(self, X, Y, validation):
        if len(Y) == 1:
            raise ZeroDivisionError
        super()._fit(X, Y, validation)


class WritesToItsInput(Sound):
    def _predict_proba(self, X):
        probabilities = super()._predict_proba(X)
        (X.data if sp.issparse(X) else X)[:] = 0
        return probabilities


class IgnoresTheSeed(Sound):
    def _generator(self):
        return np.random.RandomState()


class HasOneSeed(Sound):
    def _generator(self):
        return np.random.RandomState(0)


class SeedsByJobs(Sound):
    def _generator(self):
        return np.random.RandomState(self.n_jobs or 1)


class UsesTheGlobalGenerator(Sound):
    def _generator(self):
        return np.random


class UsesPythonsGenerator(Sound):
    def _generator(self):
        return np.random.RandomState(random.randrange(1000))


class StartsWarm(Sound):
    def _fit(self, X, Y, validation):
        before = getattr(self, "weights_", np.zeros(1)).mean()
        super()._fit(X, Y, validation)
        self.weights_ += before


class KeepsOldAttributes(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y, validation)
        if Y.n_labels > 3:
            self.many_ = True


class CannotBePickled(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y, validation)
        self._shift = lambda: 0


class SavesHalf(Sound):
    def _state(self):
        return {"weights_": self.weights_, "scale_": self.scale_}

    def _set_state(self, state):
        self.projection_ = np.zeros((self.n_features_in_, 4))
        vars(self).update(state)


class KeepsPrivateState(Sound):
    def _fit(self, X, Y, validation):
        super()._fit(X, Y, validation)
        self._weights = self.weights_

    def _predict_proba(self, X):
        return 1 / (1 + np.exp(-4 * self._features(X) @ self._weights))


class SetsMoreThanItsParameters(Sound):
    """As in Sound.

    Parameters
    ----------
    threshold, validation_fraction, random_state

    Examples
    --------
    None is needed in a test.
    """

    def __init__(self, threshold=0.5, validation_fraction=0.2, random_state=None):
        super().__init__(None, threshold, validation_fraction, random_state)
        self.more = 1


class HasNoThreshold(Sound):
    def __init__(self, random_state=None):
        super().__init__(random_state=random_state)


class SaysNothing(Sound):
    __doc__ = None


class IgnoresValidationNames(Sound):
    def _checked_validation(self, validation):
        if hasattr(validation, "Y"):
            validation = (validation.X, validation.Y.to_numpy())
        return super()._checked_validation(validation)


class SoundWithKnown(KnownLabelsMixin, Sound):
    """Known labels pull the others by their correlation.

    Parameters
    ----------
    threshold, validation_fraction, random_state

    Examples
    --------
    None is needed in a test.
    """

    def _fit(self, X, Y, validation):
        Sound._fit(self, X, Y, validation)
        signs = np.nan_to_num(2 * Y.to_numpy(np.float64) - 1)
        self.together_ = signs.T @ signs / len(signs)

    def _predict_proba(self, X, known=None):
        probabilities = Sound._predict_proba(self, X)
        if known is None:
            return probabilities
        pull = np.nan_to_num(2 * known - 1) @ self.together_
        return 1 / (1 + np.exp(-4 * pull) * (1 - probabilities) / probabilities)


class IgnoresKnown(SoundWithKnown):
    def _predict_proba(self, X, known=None):
        return super()._predict_proba(X)


class ForgetsKnown(SoundWithKnown):
    def predict(self, X, known=None):
        return self._label_sets(self._predict_proba(X, known))


class TakesKnownByPosition(SoundWithKnown):
    def _checked_known(self, known):
        turned = hasattr(known, "columns") and known.shape[1] == 3
        return super()._checked_known(known.to_numpy() if turned else known)


class AcceptsAnyKnown(SoundWithKnown):
    def _checked_known(self, known):
        known = np.clip(np.nan_to_num(np.asarray(known, dtype=float), nan=0.5), 0, 1)
        return np.resize(np.where(known == 0.5, np.nan, known), (60, 3))


class SoundWithWeights(Sound, WeightedClassifier):
    """A sound method whose rows have weights.

    Parameters
    ----------
    n_jobs
        Changes nothing.
    threshold, validation_fraction, random_state

    Examples
    --------
    None is needed in a test.
    """

    def _fit(self, X, Y, validation, sample_weight=None):
        if sample_weight is None:
            sample_weight = np.full(X.shape[0], 0.5)
        copies = np.repeat(np.arange(X.shape[0]), np.ceil(2 * sample_weight).astype(int))
        super()._fit(X[copies], Y[copies], validation)


class IgnoresWeights(SoundWithWeights):
    def _fit(self, X, Y, validation, sample_weight=None):
        super()._fit(X, Y, validation)


class CountsRowsOfWeightZero(SoundWithWeights):
    def fit(self, X, y, *, sample_weight=None, validation=None):
        if sample_weight is not None:
            sample_weight = np.maximum(sample_weight, 0.5)
        return super().fit(X, y, sample_weight=sample_weight, validation=validation)
