"""A word on blanks: which entries a method for partial labels takes for unannotated."""

from __future__ import annotations

from labelweave.labels import LabelMatrix

__all__ = ["about_blanks"]


def about_blanks(Y: LabelMatrix, rule: str, option: str) -> str:
    """What "auto" does where Y has both zeros and unknown entries; else empty.

    >>> from labelweave.labels import as_labels
    >>> about_blanks(as_labels([[1, 0], [0, float("nan")]]), "auto", "--unannotated unknown")
    'zeros are taken for unannotated and blanks are left out: if a zero is a checked no, \
add --unannotated unknown'
    >>> about_blanks(as_labels([[1, 0], [0, 1]]), "auto", "--unannotated unknown")
    ''
    """
    positives, known = (int(count.sum()) for count in Y.counts())
    has_both = positives < known < Y.n_rows * Y.n_labels
    if rule != "auto" or not has_both:
        return ""
    return (
        "zeros are taken for unannotated and blanks are left out: if a zero is a checked no, "
        f"add {option}"
    )
