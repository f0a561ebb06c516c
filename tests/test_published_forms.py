"""The methods of the papers' tables, and no others, have a published form."""

import pytest

from labelweave.bench.comparing.published import published_figures
from labelweave.bench.running.method_settings import published_settings
from labelweave.exceptions import InputError
from labelweave.methods import get_class, list_methods

# The lines of the published tables that are not named after a method of the library.
LINES = {
    **dict.fromkeys(("GM+contrastive", "GM-only", "contrastive-only", "uni-Gaussian"), "c-gmvae"),
    **dict.fromkeys(("ALL", "ANY", "BCE"), "mulsupcon"),
    "CTRAN": "c-tran",
}
# The teachers of ANT's tables, and the classifier in XML0's.
PARTS = {"ofcc", "attentionxml"}


def test_the_methods_of_published_tables_have_a_published_form():
    in_tables = {LINES.get(one.method, one.method.lower()) for one in published_figures()}
    with_form = {one.id for one in list_methods() if getattr(get_class(one.id), "published", None)}
    assert with_form == in_tables | PARTS
    for method in with_form:
        for dataset in (None, "scene", "ms-coco"):
            assert isinstance(get_class(method).published(dataset), get_class(method))


@pytest.mark.parametrize("method", ["tf-idf", "cls+", "weave"])
def test_other_methods_have_none(method):
    with pytest.raises(InputError, match="no published settings"):
        published_settings(method, True, "scene")
