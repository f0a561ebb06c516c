"""The stub for type checkers and editors names what the package has."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "stub.py"


def test_the_stub_is_what_the_tables_of_names_give():
    spec = importlib.util.spec_from_file_location("stub", TOOL)
    stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stub)
    written = stub.STUB.read_text(encoding="utf-8")
    assert written == stub.stub_text(), "run `python tools/stub.py`"
