"""What the tests of the documentation share."""

from dataclasses import replace

import pytest

from labelweave.nn import session


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """Networks train for two epochs: these tests check that the code runs, not its figures."""
    train = session.train

    def train_briefly(task, batches, settings, **options):
        settings = replace(settings, epochs=min(settings.epochs, 2))
        return train(task, batches, settings, **options)

    monkeypatch.setattr(session, "train", train_briefly)
