"""TF-IDF: labels whose words the document has."""

from __future__ import annotations

from typing import Any

from labelweave.unseen.sbert import SBERT

__all__ = ["TFIDF"]


class TFIDF(SBERT):
    """The cosine of the TF-IDF weights of document and label text, for all labels.

    Words and pairs of words of the training documents and of the seen labels' texts.

    Parameters
    ----------
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="tfidf"
    threshold, validation_fraction, random_state
        As in every estimator.

    Examples
    --------
    >>> model = TFIDF().fit(["the sea", "the sun"], [["sea"], ["sun"]])
    >>> model.rank(["a sun"], 1)[0][0][0]
    'sun'
    """

    def __init__(
        self,
        *,
        encoder: Any = "tfidf",
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            encoder=encoder,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {}
