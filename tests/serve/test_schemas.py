"""No request, whether the OpenAPI document allows it or not, is an internal error."""

import json
import re
from contextlib import suppress

import httpx
import hypothesis
import pytest
from serving import KEY, running
from test_review_queues import LIST

from labelweave.serve.review_queues import read_queues

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


CASES = 8  # of each operation and mode; benchmarks/serve_abuse.py tries thousands


@pytest.fixture(scope="module")
def served(tmp_path_factory, vectors_folder, texts_folder):
    import labelweave as lw

    folder = tmp_path_factory.mktemp("schema")
    texts, names = ["sea and sun", "deep sea", "hot sun"] * 8, [["sea", "sun"], ["sea"], ["sun"]]
    model = lw.make("tf-idf", random_state=0).fit(texts, lw.as_labels(names * 8))
    model.save(folder / "tagger")
    (folder / "news-audit.csv").write_text(LIST)
    queues = read_queues([str(folder / "news-audit.csv")])
    folders = {"shapes": vectors_folder, "news": texts_folder, "tagger": folder / "tagger"}
    database = f"sqlite:///{folder / 'state.sqlite'}"
    with running(folders, queues=queues, database=database) as service:
        yield service


def test_every_reference_of_the_document_leads_somewhere(served):
    document = httpx.get(f"{served.url}/v1/openapi.json", timeout=60).json()
    places = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(document)))
    assert places
    assert places <= set(document["components"]["schemas"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_no_request_is_an_internal_error(served, mode):
    schema = schemathesis.openapi.from_url(f"{served.url}/v1/openapi.json")
    names = iter(["shapes", "news", "tagger"] * 10_000)
    answers = []

    for result in schema.get_all_operations():
        operation = result.ok()
        strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode])

        @hypothesis.settings(
            max_examples=CASES,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=strategy)
        def ask(case):
            # Invented names would find nothing: two of three cases go to what there is.
            if "model" in case.path_parameters and len(answers) % 3:
                case.path_parameters["model"] = next(names)
            if "queue" in case.path_parameters and len(answers) % 3:
                case.path_parameters["queue"] = "news-audit"
            answer = case.call(headers={"Authorization": f"Bearer {KEY}"})
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)
            answers.append(answer.status_code)

        with suppress(hypothesis.errors.Unsatisfiable):  # nothing to do wrong in this one
            ask()
    assert len(answers) > 50
    assert {404, 422, *([200] if mode == "POSITIVE" else [])} <= set(answers)
    assert served.open.get("/v1/health/ready").status_code == 200
