"""Reviewing the likely missing labels of an audit."""

import pytest
from serving import check_problem, running, use_fakes

from labelweave.data.corrections import read_verdicts
from labelweave.exceptions import InputError
from labelweave.serve.review_queues import read_queues

LIST = (
    "rank,score,annotated,label,row,id,text,known_labels,verdict\n"
    '1,0.9,0.5,sea,4,a4,"deep, blue",sun; sky,\n'
    "2,0.8,,sun,2,,warm,,\n"
    "3,0.7,,sea,2,,warm,,\n"
)


@pytest.fixture
def queues(tmp_path):
    path = tmp_path / "news-audit.csv"
    path.write_text(LIST)
    return read_queues([str(path)])


def test_verdicts_are_stored_counted_withdrawn_and_exported(
    monkeypatch, database, queues, tmp_path
):
    use_fakes(monkeypatch)
    address = "/v1/reviews/news-audit"
    with running({"tags": "x"}, queues=queues, database=database) as served:
        for entry, verdict in ((0, "yes"), (1, "unsure"), (1, "no"), (2, "yes"), (2, None)):
            body = {"entry": entry, "verdict": verdict}
            assert served.client.put(f"{address}/verdicts", json=body).status_code == 200
    with running({"tags": "x"}, queues=queues, database=database) as served:
        assert served.open.get("/v1/reviews").json()["queues"] == [
            {"name": "news-audit", "entries": 3, "reviewed": 2, "yes": 1, "no": 1, "unsure": 0}
        ]
        entries = served.open.get(f"{address}/entries").json()
        assert [e["verdict"] for e in entries["entries"]] == ["yes", "no", None]
        assert entries["entries"][0]["known_labels"] == ["sun", "sky"]
        assert [e["annotated"] for e in entries["entries"]] == [0.5, None, None]
        left = served.open.get(f"{address}/entries", params={"state": "open"}).json()
        assert [e["number"] for e in left["entries"]] == [2]
        for ending in ("csv", "jsonl"):
            text = served.open.get(f"{address}/verdicts", params={"format": ending}).text
            path = tmp_path / f"verdicts.{ending}"
            path.write_text(text)
            verdicts = [(v.row, v.id, v.label, v.verdict) for v in read_verdicts(path).verdicts]
            assert verdicts == [(4, "a4", "sea", "yes"), (2, "", "sun", "no")]


def test_wrong_entries_and_queues(running_fake, queues):
    with running_fake(queues=queues) as served:
        put = served.client.put
        check_problem(put("/v1/reviews/no/verdicts", json={"entry": 0, "verdict": "no"}), 404)
        address = "/v1/reviews/news-audit/verdicts"
        check_problem(put(address, json={"entry": 3, "verdict": "no"}), 404)
        check_problem(put(address, json={"entry": 0, "verdict": "maybe"}), 422)
        check_problem(put(address, json={"entry": -1, "verdict": "no"}), 422)


def test_an_invalid_list_is_refused_with_its_line(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(LIST + "4,high,sea,3,,,,\n")
    with pytest.raises(InputError, match=r"list.csv, line 5"):
        read_queues([str(path)])
    with pytest.raises(InputError, match="no such file"):
        read_queues([str(tmp_path / "none.csv")])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_list_of_more_than_512_mb_is_refused(tmp_path, ending):
    path = tmp_path / f"list.{ending}"
    with path.open("wb") as file:
        file.truncate(513 * 2**20)  # no byte is written
    with pytest.raises(InputError, match="larger than 512 MiB"):
        read_queues([str(path)])


def test_a_share_of_zero_is_not_a_missing_share(tmp_path):
    lines = ('{"score": 0.5, "annotated": 0.0, "label": "sea", "row": 1}',)
    lines += ('{"score": 0.4, "label": "sun", "row": 2}',)
    (tmp_path / "list.jsonl").write_text("\n".join(lines))
    (queue,) = read_queues([str(tmp_path / "list.jsonl")]).values()
    assert [entry.annotated for entry in queue.entries] == [0.0, None]
