"""Headers without end or too late, connections too many, clients that do not read."""

import socket

import pytest
from serving import check_problem, labels_of, predict, wait_until

HEAD = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
LATE = 300  # seconds after which a test gives up


def connect(served, sent=b""):
    connection = socket.create_connection(("127.0.0.1", served.service.settings.port), timeout=LATE)
    connection.sendall(sent)
    return connection


def answer_of(connection):
    """What the service sends until it closes the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:  # it closes without reading the rest
        pass
    return b"".join(parts)


def send_until_closed(connection, part, most):
    """Send a part again and again; return the number of bytes that the service took."""
    sent = 0
    try:
        while sent < most:
            connection.sendall(part)
            sent += len(part)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize(
    "start",
    [
        b"GET /",
        HEAD + b"X: ",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;",
    ],
    ids=["address", "header", "trailer", "extension"],
)
def test_a_header_without_end_is_cut_off(running_fake, start):
    most = 64 * 2**20
    with running_fake() as served, connect(served, start) as connection:
        assert send_until_closed(connection, b"x" * 2**16, most) < most
        assert served.open.get("/v1/health/live").status_code == 200


def test_many_headers_are_cut_off_and_some_are_not(running_fake):
    with running_fake(max_header=2**15) as served:
        for lines, status in ((100, b" 200 "), (3000, b" 431 ")):
            header = b"".join(b"X-%d: %s\r\n" % (i, b"y" * 20) for i in range(lines))
            with connect(served, HEAD + header + b"Connection: close\r\n\r\n") as connection:
                answer = answer_of(connection)
            assert status in answer[:20]
    assert b"application/problem+json" in answer


@pytest.mark.parametrize("sent", [b"", b"\r\n", HEAD], ids=["nothing", "empty line", "half"])
def test_a_header_that_does_not_arrive_in_time_is_answered_408(running_fake, sent):
    with running_fake(header_timeout=1) as served:
        with connect(served, sent) as connection:
            assert b" 408 " in answer_of(connection)[:20]
        with connect(served, HEAD + b"\r\n") as connection:  # the second one on a connection
            assert b" 200 " in connection.recv(65536)[:20]
            connection.sendall(sent or b"GET")
            assert b" 408 " in answer_of(connection)


def test_half_sent_headers_of_one_client_leave_room_for_its_requests(running_fake):
    with running_fake(max_connections=20) as served:
        half = [connect(served, HEAD) for _ in range(60)]
        for _ in range(3):
            assert served.open.get("/v1/health/live").status_code == 200
            assert labels_of(predict(served, "tags", inputs=["sea"])) == [["sea"]]
        assert len(served.server.server_state.connections) <= 20
        for connection in half:
            connection.close()


def test_connections_in_use_are_not_closed_for_new_ones(running_fake):
    with running_fake(max_connections=2, max_total_connections=2) as served:
        predict(served, "tags", inputs=["load the model"])
        served.open.close()
        loaded = served.service.models.get("tags").current
        loaded.host.model.may_predict.clear()
        body = b'{"inputs": ["the sea"]}'
        request = (
            b"POST /v1/models/tags/predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        used = []
        for n in (1, 2):
            used.append(connect(served, request))
            wait_until(lambda n=n: len(served.server.server_state.tasks) == n)
        with connect(served) as third:
            assert b" 503 " in answer_of(third)[:20]
        loaded.host.model.may_predict.set()
        for connection in used:
            assert b'"label":"sea"' in answer_of(connection)
            connection.close()


def test_connections_of_all_clients_are_bounded(running_fake):
    with running_fake(max_total_connections=10) as served:
        half = [connect(served, HEAD) for _ in range(30)]
        assert served.open.get("/v1/health/live").status_code == 200
        assert len(served.server.server_state.connections) <= 10
        for connection in half:
            connection.close()


def test_a_client_that_does_not_read_is_disconnected(running_fake):
    with running_fake(body_timeout=2) as served:
        names = [f"label {i}" * 20 for i in range(300)]
        new = {"labels": [{"name": name} for name in names]}
        assert served.client.post("/v1/models/tags/labels", json=new).status_code == 200
        body = b'{"inputs": [%s], "scores": true}' % b",".join([b'"a"'] * 300)
        with connect(served) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(
                b"POST /v1/models/tags/predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (len(body), body)
            )
            connections = served.server.server_state.connections
            wait_until(lambda: len(connections) == 2)
            wait_until(lambda: len(connections) == 1)  # that of served.client
        check_problem(predict(served, "tags", inputs=[3]), 422)
