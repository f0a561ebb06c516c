"""Services that redirect, drip, nest without end or send too much."""

import json
import re
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation import remote_model
from labelweave.scattered._amalgamation.remote_model import RemoteModel, list_models
from labelweave.scattered.teacher import Teacher

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
KEY = "a-key-that-nobody-else-may-see"


def read_request(connection):
    """The whole request: a connection that is closed with bytes unread is reset."""
    request = b""
    while b"\r\n\r\n" not in request and (part := connection.recv(65536)):
        request += part
    head, _, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length and len(body) < int(length[1]) and (part := connection.recv(65536)):
        body += part
    return head + b"\r\n\r\n" + body


@contextmanager
def service(*parts, repeat=b"", pause=0.0):
    """Answer each connection with these parts, then with one part again and again, with pauses.

    Yields the address, and a list of the requests that arrived.
    """
    server = socket.create_server(("127.0.0.1", 0))
    requests, is_over = [], threading.Event()

    def answer(connection):
        with connection:
            requests.append(read_request(connection))
            try:
                for part in parts:
                    connection.sendall(part)
                while repeat and not is_over.wait(pause):
                    connection.sendall(repeat)
            except OSError:  # the client has closed the connection
                pass

    def accept():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=[connection], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v2/models/m", requests
    finally:
        is_over.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def ask(address, **options):
    return RemoteModel(address, **options).predict_proba(np.zeros((1, 2)))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_key_does_not_follow_a_redirect(status):
    with service() as (other, others):
        head = f"HTTP/1.1 {status} Moved\r\nLocation: {other}\r\nContent-Length: 0\r\n\r\n".encode()
        with service(head) as (address, requests):
            with pytest.raises(InputError, match=f"with {status} Moved, and redirects are not"):
                ask(address, api_key=KEY)
            with pytest.raises(InputError, match="redirects are not followed"):
                _ = RemoteModel(address, api_key=KEY).label_names_
    assert len(requests) == 2
    assert all(KEY.encode() in request for request in requests)
    assert others == []


@pytest.mark.parametrize(
    "parts",
    [[b"HTTP/1.1 200 OK\r\nX: "], [OK + b"\r\n"], [OK + b"Transfer-Encoding: chunked\r\n\r\n"]],
    ids=["header", "body", "chunks"],
)
def test_an_answer_that_drips_ends_at_the_timeout(parts):
    """Each byte arrives in time; only all of them together do not."""
    with service(*parts, repeat=b"1", pause=0.05) as (address, _):
        started = time.monotonic()
        with pytest.raises(InputError, match=r"did not answer within 0\.5 seconds"):
            ask(address, timeout=0.5)
        assert time.monotonic() - started >= 0.5


def test_no_answer_ends_at_the_timeout():
    with (
        service(repeat=b"never", pause=3600) as (address, _),
        pytest.raises(InputError, match=r"did not answer within 0\.2 seconds"),
    ):
        ask(address, timeout=0.2)


def test_a_large_answer_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(remote_model, "_MAX_BYTES", 2**20)
    with (
        service(OK + b"\r\n", repeat=b"1" * 2**16) as (address, _),
        pytest.raises(InputError, match="more than a response may have"),
    ):
        ask(address)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 10**6, "not JSON"),
        (b'{"a":' * 10**5, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" + b"[]," * (5 * 2**20) + b"[]]", "more than a response may have"),
        (b'{"outputs": [{"name": "p", "shape": [1, 1], "data": [1%s]}]}' % (b"0" * 400), "other"),
        (b'{"outputs": [{"name": "p", "shape": [9, 9], "data": [1]}]}', "other than an inference"),
    ],
    ids=["brackets", "objects", "bytes", "empty lists", "large number", "shape"],
)
def test_a_hostile_body_gets_one_sentence(monkeypatch, body, message):
    monkeypatch.setattr(remote_model, "_MAX_PARSED", 2**28)
    with service(OK + b"\r\n" + body) as (address, _), pytest.raises(InputError, match=message):
        ask(address)


@pytest.mark.parametrize("labels", [b"5", b'"ab"', b"{}", b"null"])
def test_labels_that_are_no_list_are_no_labels(labels):
    body = b'{"outputs": [{"parameters": {"labels": %s}}]}' % labels
    for sent in (body, b"[]", b'{"outputs": [3]}'):
        with service(OK + b"\r\n" + sent) as (address, _):
            assert not hasattr(RemoteModel(address), "label_names_")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"SSH"])
def test_an_answer_that_is_cut_off_gets_one_sentence(answer):
    said = r"cannot be reached|not JSON"
    with service(answer) as (address, _), pytest.raises(InputError, match=said):
        ask(address)


def described(**parameters):
    output = {
        "name": "probabilities",
        "shape": [1, 2],
        "data": [0.1, 0.9],
        "parameters": parameters,
    }
    return OK + b"\r\n" + json.dumps({"outputs": [output]}).encode()


def test_a_service_lists_its_labels_and_thresholds():
    with service(described(labels=["a", "b"], threshold=[0.2, 0.3])) as (address, requests):
        teacher = Teacher(address)
        assert teacher.labels == ("a", "b")
        assert teacher.thresholds.tolist() == [0.2, 0.3]
        assert len(requests) == 1
    for wrong in ({}, {"threshold": None}, {"threshold": "0.2"}):
        with service(described(labels=["a", "b"], **wrong)) as (address, _):
            assert Teacher(address).thresholds.tolist() == [0.5, 0.5]


def test_an_answer_of_another_model_is_refused():
    with service(described(labels=["a", "b"])) as (address, _):
        assert RemoteModel(address).predict_proba(np.zeros((1, 2))).tolist() == [[0.1, 0.9]]
        assert RemoteModel(address, labels=["a", "b"]).predict_proba(np.zeros((1, 2))).shape
        with pytest.raises(InputError, match="no longer predicts the labels that it listed before"):
            RemoteModel(address, labels=["b", "a"]).predict_proba(np.zeros((1, 2)))


def test_the_key_of_an_address_comes_from_the_environment(monkeypatch):
    with service(described()) as (address, requests):
        root = address.removesuffix("/v2/models/m")
        monkeypatch.setenv(remote_model.KEYS_VARIABLE, json.dumps({root: KEY, f"{root}0": "other"}))
        ask(address)
        assert f"Bearer {KEY}".encode() in requests[-1]
        monkeypatch.setenv(remote_model.KEYS_VARIABLE, json.dumps({f"{root}0": KEY}))
        ask(address)
        assert b"Bearer" not in requests[-1]  # the key of an address that only begins alike
        monkeypatch.setenv(remote_model.KEYS_VARIABLE, KEY)
        with pytest.raises(InputError, match="must be a JSON object of addresses") as caught:
            ask(address)
        assert KEY not in str(caught.value)


def test_a_root_address_lists_its_models():
    listed = json.dumps({"models": [{"name": "a b"}, {"name": "c"}]}).encode()
    with service(OK + b"\r\n" + listed) as (address, requests):
        root = address.removesuffix("v2/models/m")
        assert list_models(root) == [f"{root}v2/models/a%20b", f"{root}v2/models/c"]
        assert b"GET /v1/models " in requests[0]
    with service(OK + b"\r\n[]") as (address, _):
        assert list_models(address) == []
