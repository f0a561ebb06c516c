"""What the tests of the documentation share."""

from dataclasses import replace

import pytest

from labelweave.nn import session


@pytest.fixture
def short_training(monkeypatch):
    """Networks train for two epochs, for tests that check that code runs and not its figures."""
    train = session.train

    def train_briefly(task, batches, settings, **options):
        settings = replace(settings, epochs=min(settings.epochs, 2))
        return train(task, batches, settings, **options)

    monkeypatch.setattr(session, "train", train_briefly)
