"""TF-IDF: labels whose words occur in the document."""

from __future__ import annotations

from typing import Any, ClassVar

from labelweave.unseen.sbert import SBERT

__all__ = ["TFIDF"]


class TFIDF(SBERT):
    """Cosine of the TF-IDF weights of document and label text.

    The features are the words and pairs of words of the training documents and of the texts of the
    seen labels.

    Parameters
    ----------
    encoder : {"minilm", "fast", "tfidf"} or transformer of texts, default="tfidf"
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Examples
    --------
    >>> model = TFIDF().fit(["the sea", "the sun"], [["sea"], ["sun"]])
    >>> model.rank(["a sun"], 1)[0][0][0]
    'sun'
    """

    published: ClassVar[Any] = None  # it is in no paper's table

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
