"""What the tests of readers share."""

import json

import pytest


@pytest.fixture
def write(tmp_path, request):
    """Write text, bytes or JSON records to a file, by default the FILE of the test module."""

    def to_file(content, name=None):
        path = tmp_path / (name or request.module.FILE)
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file
