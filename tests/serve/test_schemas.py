"""No request, whether the OpenAPI document allows it or not, is an internal error."""

import json
import re
from contextlib import suppress

import httpx
import hypothesis
import pytest
from pydantic import ValidationError
from serving import KEY, check_problem, running
from test_review_queues import LIST

from labelweave.exceptions import InputError
from labelweave.serve import inputs_and_labels
from labelweave.serve.problems import ProblemError, validation_message
from labelweave.serve.review_queues import read_queues
from labelweave.serve.schemas import (
    AddLabels,
    BodyLimits,
    InferRequest,
    PredictRequest,
    parse_json,
)

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
    document = httpx.get(f"{served.url}/v1/openapi.json", timeout=300).json()
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


# -- large bodies ----------------------------------------------------------------------

MANY = 100_000


def parse(body, shape=PredictRequest):
    return parse_json("application/json", body, shape, BodyLimits.of(1024, 200))


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        (PredictRequest, b'{"inputs": ["a"], "known": [%s]}' % b",".join([b"3"] * MANY)),
        (PredictRequest, b'{"inputs": ["a"], "known": [{%s}]}'),
        (PredictRequest, b'{"inputs": ["a"], "labels": [%s]}' % b",".join([b"3"] * MANY)),
        (AddLabels, b'{"labels": [%s]}' % b",".join([b"3"] * MANY)),
        (InferRequest, b'{"inputs": [%s]}' % b",".join([b"3"] * MANY)),
        (InferRequest, b'{"inputs": [{"shape": [%s]}]}' % b",".join([b'"x"'] * MANY)),
        (InferRequest, b'{"inputs": [], "outputs": [%s]}' % b",".join([b"3"] * MANY)),
    ],
    ids=["known", "known of a row", "labels", "new labels", "tensors", "shape", "outputs"],
)
def test_a_body_with_many_faults_is_refused_at_the_first_ones(shape, body):
    """All of them would take seconds and gigabytes."""
    if b"%s" in body:
        body %= b",".join(b'"%d": "x"' % i for i in range(MANY))
    with pytest.raises(ValidationError) as caught:
        parse(body, shape)
    assert caught.value.error_count() < 100


def test_many_unknown_fields_are_refused_by_the_first():
    body = b'{"inputs": [[1]], %s}' % b",".join(b'"field %d": 1' % i for i in range(MANY))
    with pytest.raises(InputError, match="unknown field 'field 0'"):
        parse(body)
    with pytest.raises(ValidationError, match="Extra inputs"):
        parse(b'{"inputs": [[1]], "field": 1}')


@pytest.mark.parametrize("container", [b"[]", b"{}", b"[[[]]]"])
def test_many_lists_are_refused_before_they_are_parsed(container):
    body = b'{"inputs": [%s]}' % b",".join([container] * MANY)
    with pytest.raises(ProblemError, match="more than 4,048 lists and objects") as caught:
        parse(body)
    assert caught.value.status == 413


@pytest.mark.parametrize("value", [b"1", b'""', b'"a":1', b"null"])
def test_many_values_are_refused_before_they_are_parsed(value):
    body = b'{"inputs": [{%s}]}' % b",".join([value] * (3 * MANY))
    with pytest.raises(ProblemError, match="more than 206,800 values") as caught:
        parse(body)
    assert caught.value.status == 413


def test_as_many_lists_as_a_request_may_need_are_parsed():
    rows = [[0.5] * 10] * 1024
    content = {"inputs": rows, "known": [{"a": True, "b": False}] * 1024}
    assert parse(json.dumps(content).encode()).model_dump(exclude_unset=True) == content
    texts = ['[{"quoted \\\\ [": [[[[' + "," * 300] * 1024
    assert parse(json.dumps({"inputs": texts}).encode()).inputs == texts


@pytest.mark.parametrize("ending", [b"", b'"', b'"]', b'\\"]}', b"\xff"])
def test_a_large_body_that_is_no_json_gets_one_sentence(ending):
    with pytest.raises(InputError, match="not valid JSON"):
        parse(b'{"inputs": ["' + b"[" * MANY + ending)


@pytest.mark.parametrize(
    "inputs",
    [[[None] * 10_000], [["x"] * 2000] * 5, [{"f1": 1}, {str(i): None for i in range(10_000)}]],
    ids=["nulls", "texts", "records"],
)
def test_inputs_with_many_faults_are_refused_by_the_first(served, monkeypatch, inputs):
    n_faults = []

    def count(errors):
        n_faults.append(len(errors))
        return validation_message(errors)

    monkeypatch.setattr(inputs_and_labels, "validation_message", count)
    check_problem(served.open.post("/v1/models/shapes/predict", json={"inputs": inputs}), 422)
    assert sum(n_faults) <= 1


def test_known_labels_are_true_or_false(served):
    body = {"inputs": [[1, 2, 3]], "known": [{"red": "yes"}]}
    answer = served.open.post("/v1/models/shapes/predict", json=body)
    check_problem(answer, 422, "known.0", "true or false")
