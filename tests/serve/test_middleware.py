"""Keys, host names, limits, leaks and logs."""

import logging
import re
import socket

import pytest
from serving import KEY, check_problem, predict, running, wait_until

from labelweave.serve.middleware import KeyRing, RateLimit
from labelweave.serve.state.service_store import key_hash

LABELS = "/v1/models/tags/labels"


def connect(served):
    return socket.create_connection(("127.0.0.1", served.service.settings.port))


def raw(served, request):
    """Bytes sent as they are, and what comes back until the service closes."""
    with connect(served) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_every_change_needs_a_key_and_reading_on_loopback_none(fake):
    body = {"labels": [{"name": "rain"}]}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEY}"}):
        answer = fake.open.post(LABELS, json=body, headers=headers)
        check_problem(answer, 401, "key")
        assert answer.headers["www-authenticate"] == "Bearer"
    check_problem(fake.open.delete(LABELS, params={"name": "sea"}), 401)
    check_problem(fake.open.patch(LABELS, json={"name": "sea", "new_name": "see"}), 401)
    check_problem(fake.open.post("/v1/models/tags/reload"), 401)
    check_problem(fake.open.put("/v1/reviews/x/verdicts", json={"entry": 0, "verdict": "no"}), 401)
    assert fake.open.get(LABELS).json()["total"] == 2
    assert predict(fake, "tags", inputs=["sea"]).status_code == 200
    assert fake.open.post(LABELS, json=body, headers={"X-API-Key": KEY}).status_code == 200


@pytest.mark.parametrize("settings", [{"host": "0.0.0.0"}, {"require_key": True}])
def test_beyond_loopback_everything_but_health_needs_a_key(running_fake, settings):
    with running_fake(**settings) as served:
        for address in ("/v1/models", LABELS, "/metrics", "/v2", "/v1/openapi.json", "/nothing"):
            check_problem(served.open.get(address), 401)
            assert served.client.get(address).status_code in (200, 404)
        check_problem(predict(served, "tags", inputs=["sea"]), 401)
        assert served.open.get("/v1/health/ready").status_code == 200
        assert served.open.get("/").status_code == 200  # the page, which asks for the key


def test_a_foreign_host_name_is_refused_without_a_key(running_fake):
    with running_fake(allowed_hosts=("tags.example",)) as served:
        for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
            check_problem(served.open.get("/v1/models", headers={"Host": host}), 403)
        for host in ("localhost", "localhost:8000", "[::1]:8000", "tags.example"):
            assert served.open.get("/v1/models", headers={"Host": host}).status_code == 200
        assert served.client.get("/v1/models", headers={"Host": "x.y"}).status_code == 200


def test_cors_is_closed_unless_an_origin_is_allowed(monkeypatch, sqlite, fake):
    asking = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    assert not any(
        "access-control" in name for name in fake.open.get("/v1/models", headers=asking).headers
    )
    fake.open.options(LABELS, headers=asking)
    with running({"tags": "x"}, database=sqlite, allowed_origins=("https://a.example",)) as served:
        answer = served.open.options(LABELS, headers=asking)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        for inputs, status in ((["sea"], 200), ([3], 422)):
            answer = served.open.post(
                "/v1/models/tags/predict", json={"inputs": inputs}, headers=asking
            )
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = served.open.get("/v1/models", headers={"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


def test_keys_are_stored_as_hashes_and_can_be_revoked(fake):
    store = fake.service.store
    key = store.add_key("second")
    assert store.key_hashes()["second"] == key_hash(key) != key
    wait_until(lambda: "second" in fake.service.keys.stored_hashes)
    bearer = {"Authorization": f"Bearer {key}"}
    assert fake.open.post("/v1/models/tags/reload", headers=bearer).status_code == 204
    store.revoke_key("second")
    wait_until(lambda: "second" not in fake.service.keys.stored_hashes)
    check_problem(fake.open.post("/v1/models/tags/reload", headers=bearer), 401)


def test_keys_are_compared_as_a_whole():
    ring = KeyRing({"one": key_hash("k" * 30), "two": key_hash("l" * 30)})
    assert [ring.owner(k) for k in ("k" * 30, "l" * 30, "k" * 29, "")] == ["one", "two", None, None]


def test_rate_limit(running_fake):
    with running_fake(rate=0.001, burst=3) as served:
        answers = [served.open.get("/v1/models") for _ in range(5)]
        assert [a.status_code for a in answers] == [200, 200, 200, 429, 429]
        check_problem(answers[-1], 429)
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert served.client.get("/v1/models").status_code == 200  # another client
    limit = RateLimit(1, 1, max_clients=10)
    for i in range(100):
        limit.wait(str(i), 0.0)
    assert len(limit._buckets) == 10


def test_limits_of_body_rows_and_texts(running_fake):
    with running_fake(max_body=10_000, max_rows=4, max_text=50) as served:
        check_problem(predict(served, "tags", inputs=["x" * 20_000]), 413, "10,000 bytes")
        check_problem(predict(served, "tags", inputs=["x"] * 5), 413, "5 inputs")
        check_problem(predict(served, "tags", inputs=["x" * 51]), 413, "51 characters")
        huge = {"name": "X", "datatype": "BYTES", "shape": [2**31], "data": ["x"]}
        check_problem(served.open.post("/v2/models/tags/infer", json={"inputs": [huge]}), 413)
        kind = {"Content-Type": "application/json"}
        chunks = (b"x" * 1000 for _ in range(1000))  # sent without a Content-Length
        answer = served.open.post("/v1/models/tags/predict", content=chunks, headers=kind)
        check_problem(answer, 413)
        assert predict(served, "tags", inputs=["sea"]).status_code == 200


HEAD = (
    b"POST /v1/models/tags/predict HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n"
)


def test_a_body_that_is_late(running_fake):
    with (
        running_fake(body_timeout=0.1) as served,
        connect(served) as slow,
    ):
        slow.sendall(HEAD)
        assert b" 408 " in slow.recv(65536)


def test_requests_that_are_incomplete_or_hostile(fake):
    raw(fake, HEAD + b'{"inputs"')  # the client disconnects
    for hostile in (
        b"\x00\xff\xfe" * 100 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/models/tags/predict HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/models/tags/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        answer = raw(fake, hostile)
        assert not re.match(rb"HTTP/1.1 [25]", answer), answer
    assert predict(fake, "tags", inputs=["sea"]).status_code == 200


def test_bytes_in_flight_are_bounded(running_fake):
    with running_fake(max_bytes_in_flight=1000) as served:
        check_problem(predict(served, "tags", inputs=["x" * 2000]), 429)
        assert predict(served, "tags", inputs=["sea"]).status_code == 200
        assert served.open.get("/v1/models").status_code == 200


def test_bytes_of_bodies_that_are_not_complete_are_in_flight(running_fake):
    with running_fake(max_bytes_in_flight=1000, body_timeout=300) as served:
        address = ("127.0.0.1", served.service.settings.port)
        head = b"POST /v1/models/tags/predict HTTP/1.1\r\nHost: localhost\r\n"
        head += b"Content-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        with socket.create_connection(address) as slow:
            slow.sendall(head + b"x" * 899)
            wait_until(lambda: served.server.server_state.tasks)  # it has arrived and waits
            wait_until(lambda: predict(served, "tags", inputs=["y" * 200]).status_code == 429)
        wait_until(lambda: predict(served, "tags", inputs=["y" * 200]).status_code == 200)


def test_answers_leak_no_version_path_or_server(real):
    for address in ("/v1/models", "/v1/models/shapes", "/v2", "/v2/models/news", "/nothing", "/"):
        answer = real.open.get(address)
        sent = answer.text + str(answer.headers)
        assert "server" not in answer.headers
        leak = re.search(r"uvicorn|fastapi|/tmp|site-packages|\d+\.\d+\.\d+(?!\.\d)", sent)
        assert not leak, sent


def test_security_headers(fake):
    headers = fake.open.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


def _access_lines(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "labelweave.access"]


def test_the_access_log_holds_no_content(fake, caplog):
    with caplog.at_level(logging.INFO, logger="labelweave.access"):
        predict(fake, "tags", inputs=["my secret letter"])
        fake.open.get("/v1/models/tags/labels/nearest", params={"name": "secret"})
        fake.client.post(LABELS, json={"labels": [{"name": "secret"}]})
        fake.open.get("/secret%0aline")
        wait_until(lambda: len(_access_lines(caplog)) == 4)  # written after the response
    lines = _access_lines(caplog)
    assert "secret" not in "".join(lines)
    assert "POST /v1/models/{model}/labels 200" in lines[2]
    assert lines[2].endswith(" tests")
    assert KEY not in "".join(lines)
