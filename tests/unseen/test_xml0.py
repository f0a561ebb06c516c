"""XML0 and the methods over a classifier: what they compute, and what they are given."""

import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.pipeline.parameters import parse_settings
from labelweave.pipeline.recipe import Recipe
from labelweave.unseen._fusion.label_scores import LabelScores
from labelweave.unseen.xml0 import learn_weight
from labelweave.unseen.xml0_algorithm import label_fusion_reference

SEEN = ("sea life", "desert land", "city street")
WORDS = (("sea", "fish", "wave"), ("desert", "sand", "camel"), ("city", "street", "car"))


def make_texts(n_rows, seed=0):
    random = np.random.default_rng(seed)
    Y = (random.random((n_rows, 3)) < 0.4).astype(int)
    texts = [
        " ".join([*(w for j in np.flatnonzero(row) for w in random.permutation(WORDS[j])), "day"])
        for row in Y
    ]
    return texts, lw.as_labels(Y, names=SEEN)


TEXTS, Y = make_texts(80)


class Table:
    """An encoder that knows a few texts by heart; all others are zero."""

    vectors = {  # noqa: RUF012
        "sea life": [1, 0, 0],
        "desert land": [0, 1, 0],
        "city street": [0, 0, 1],
        "harbour": [0.6, 0, 0.8],
        "oasis": [0.6, 0.8, 0],
        "fish": [1, 0, 0],
    }

    def get_params(self, deep=True):
        return {}

    def set_params(self):
        return self

    def fit(self, texts):
        return self

    def transform(self, texts):
        return np.array([self.vectors.get(t, [0, 0, 0]) for t in texts], dtype=np.float32)


class Constant:
    """A classifier that gives every text the same probabilities."""

    def __init__(self, *p):
        self.p = p
        self.label_names_ = np.array(SEEN, dtype=object)

    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1))


@pytest.fixture(scope="module")
def fitted():
    return lw.XML0(encoder="tfidf", random_state=0).fit(
        TEXTS, Y, labels={"fish": "sea", "sand": ""}
    )


# -- label fusion ----------------------------------------------------------------------


def test_scores_are_those_of_algorithm_1():
    p = np.array([0.9, 0.2, 0.7])
    model = lw.XML0LF.from_fitted(Constant(*p), encoder=Table()).add_labels(["harbour", "oasis"])
    vectors = Table().transform(list(SEEN))
    plain = label_fusion_reference(p, vectors, Table().transform(["harbour", "oasis"]))
    (explained,) = model.explain(["any"], k=2)
    assert [one.label for one in explained] == [["harbour", "oasis"][i] for i in plain.labels]
    np.testing.assert_allclose([one.fusion for one in explained], plain.scores, atol=1e-6)
    assert explained[0].because_of == [("sea life", 0.9), ("city street", pytest.approx(0.7))]
    assert explained[0].similarity is None


def test_conse_takes_all_predicted_labels():
    p = np.array([0.9, 0.3, 0.6])
    model = lw.ConSE.from_fitted(Constant(*p), encoder=Table(), min_probability=0.1)
    model.add_labels(["harbour", "oasis"])
    scores, _ = model._label_scores(model.table_.unseen_rows, p[None], None)
    centre = p / np.linalg.norm(p)
    expected = Table().transform(["harbour", "oasis"]) @ centre
    np.testing.assert_allclose(scores.conse[0], expected, atol=1e-6)


def test_threshold_and_cap_choose_the_predicted_labels():
    def because(**options):
        model = lw.XML0LF.from_fitted(Constant(0.9, 0.4, 0.6), encoder=Table(), **options)
        (((first, *_),)) = model.add_labels(["harbour"]).explain(["any"], 1)
        return [name for name, _ in first.because_of]

    assert because(min_probability=0.05) == ["sea life", "city street"]
    assert because(min_probability=0.7) == ["sea life"]
    assert because(max_predicted=1) == ["sea life"]


def test_without_a_predicted_label_the_text_decides():
    model = lw.XML0.from_fitted(Constant(0, 0, 0), encoder=Table(), min_probability=0.5)
    model.add_labels(["harbour", "fish"])
    (explained,) = model.explain(["fish"], 2)
    assert [one.label for one in explained] == ["fish", "harbour"]
    assert [one.fusion for one in explained] == [0, 0]
    assert explained[0].because_of == []
    assert explained[0].similarity == pytest.approx(1)


def test_greedy_fusion_and_threads_give_the_same_here():
    scores = [
        lw.XML0LF.from_fitted(Constant(0.9, 0.2, 0.7), encoder=Table(), **options)
        .add_labels(["harbour", "oasis"])
        .predict_proba(["a", "b"])
        for options in ({}, {"fusion": "greedy"}, {"n_jobs": 2})
    ]
    np.testing.assert_allclose(scores[1], scores[0])
    np.testing.assert_allclose(scores[2], scores[0])


# -- the combination -------------------------------------------------------------------


def slow_ndcg(scores, truth, k):
    """nDCG@k of one document, by the definition; equal scores keep their order."""
    order = sorted(range(len(scores)), key=lambda j: -scores[j])
    gain = sum(truth[j] / math.log2(place + 2) for place, j in enumerate(order[:k]))
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, int(sum(truth)))))


def test_the_weight_has_the_best_ndcg_on_labels_treated_as_unseen():
    random = np.random.default_rng(0)
    draws = []
    for _ in range(2):
        truth = (random.random((40, 8)) < 0.3).astype(float)
        similarity, fusion = (truth * share + random.random((40, 8)) for share in (0.6, 0.4))
        draws.append((LabelScores(similarity, fusion=fusion), truth))
    quality = {}
    for weight in [i / 10 for i in range(11)]:
        quality[weight] = sum(
            np.mean(
                [
                    slow_ndcg((1 - weight) * s + weight * f, t, 5)
                    for s, f, t in zip(scores.similarity, scores.fusion, truth, strict=True)
                    if t.any()
                ]
            )
            for scores, truth in draws
        )
    best = max(quality, key=quality.get)
    assert learn_weight(draws) == pytest.approx(best)
    assert 0 < best < 1


def test_the_final_score_and_its_weight_from_the_paper_alone():
    """Every probability of an unseen label by loops over documents, labels and combinations."""
    random = np.random.default_rng(1)
    seen = [f"s {i}" for i in range(20)]
    unseen = [f"u {i}" for i in range(4)]
    texts = [f"d {i}" for i in range(30)]
    vectors = random.normal(size=(54, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    E = dict(zip([*seen, *unseen, *texts], vectors, strict=True))
    O = dict(zip(texts, random.random((30, 20)), strict=True))  # noqa: E741

    class Encoder(Table):
        vectors = E

    def cosine(a, b):
        return a @ b / math.sqrt((a @ a) * (b @ b))

    def fusion(d, u, columns):
        P = sorted((i for i in columns if O[d][i] > 0.3), key=lambda i: -O[d][i])[:4]
        C = [c_j for k in range(1, len(P) + 1) for c_j in combinations(P, k)]
        embeddings = [sum(O[d][i] * E[seen[i]] for i in c_j) for c_j in C]
        return max((cosine(c_emb, E[u]) for c_emb in embeddings), default=0)

    def final(d, u, weight, columns):
        return (1 - weight) * cosine(E[d], E[u]) + weight * fusion(d, u, columns)

    Y = [
        [int(final(d, s, 0.6, set(range(20)) - {j}) > 0.45) for j, s in enumerate(seen)]
        for d in texts
    ]
    model = lw.XML0.from_fitted(
        lambda X: np.array([O[d] for d in X]),
        seen,
        encoder=Encoder(),
        X=texts,
        Y=lw.as_labels(Y, names=seen),
        min_probability=0.3,
        max_predicted=4,
        random_state=0,
    ).add_labels(unseen)
    quality = dict.fromkeys([i / 10 for i in range(11)], 0.0)
    for held in model._draw_labels(20):
        others = set(range(20)) - set(held)
        rows = [(d, [y[j] for j in held]) for d, y in zip(texts, Y, strict=True)]
        rows = [(d, truth) for d, truth in rows if any(truth)]
        for weight in quality:
            for d, truth in rows:
                scores = [final(d, seen[j], weight, others) for j in held]
                quality[weight] += slow_ndcg(scores, truth, 4) / len(rows)
    weight = max(quality, key=quality.get)
    assert 0 < weight < 1
    assert model.combination_.weights == pytest.approx([1 - weight, weight])
    slope, offset = model.combination_.slope, model.combination_.offset
    expected = [
        [1 / (1 + math.exp(-slope * final(d, u, weight, range(20)) - offset)) for u in unseen]
        for d in texts
    ]
    np.testing.assert_allclose(model.predict_proba(texts)[:, 20:], expected, rtol=1e-5)


def test_nothing_is_fine_tuned_on_what_the_weight_is_learnt_on(monkeypatch):
    used = {}

    def record(embedder, documents, label_texts, positive, **options):
        used.update(documents=documents, labels=label_texts, positive=positive.toarray())
        return embedder

    monkeypatch.setattr("labelweave.unseen._fusion.zero_shot.fine_tune", record)
    validation = ["fish wave", "camel"], lw.as_labels([[1, 0, 0], [0, 1, 0]], names=SEEN)
    model = lw.XML0(encoder=Table(), finetune="full", random_state=0)
    model.fit(TEXTS, Y, validation=validation)
    held = model._draw_labels(3)[0]
    kept = [j for j in range(3) if j not in held]
    assert used["labels"] == [SEEN[j] for j in kept]
    assert used["documents"] == TEXTS
    np.testing.assert_array_equal(used["positive"], Y.to_numpy()[:, kept])


def test_reciprocal_ranks_are_added():
    scores = LabelScores(np.array([[0.2, 0.5, 0.5]]), fusion=np.array([[0.3, 0.2, 0.1]]))
    expected = [[1 / 63 + 1 / 61, 1 / 61 + 1 / 62, 1 / 61 + 1 / 63]]
    np.testing.assert_allclose(scores.feature("rrf"), expected)


@pytest.mark.parametrize("combine", ["weighted", "rrf"])
def test_combinations_rank_and_give_probabilities(combine):
    model = lw.XML0(encoder="tfidf", combine=combine, random_state=0).fit(TEXTS, Y)
    model.add_labels(["camel sand", "wave fish"])
    best = model.rank(["camel sand desert day", "fish wave"], 1, among="unseen")
    assert [row[0][0] for row in best] == ["camel sand", "wave fish"]
    assert ((model.predict_proba(TEXTS) > 0) & (model.predict_proba(TEXTS) < 1)).all()


@pytest.mark.parametrize(
    ("method", "paper"),
    [
        # Section IV: AttentionXML and all-MiniLM-L6-v2; III-B: fine-tuned on 2,000,000 pairs.
        (lw.XML0, {"finetune": "full", "combine": "weighted"}),
        (lw.XML0LF, {"finetune": None}),
        (lw.ConSE, {"finetune": None}),
        (lw.SBERT, {"finetune": "full"}),
    ],
)
def test_published_settings_of_table_ii(method, paper):
    settings = method.published("cooking-se").get_params(deep=False)
    assert paper.items() <= settings.items()
    assert settings["encoder"] == "minilm"
    if method is not lw.SBERT:
        assert isinstance(settings["classifier"], lw.AttentionXML)
        assert settings["classifier"].tree_above > 15_303 - 504  # Table I; no tree
    if paper["finetune"] == "full":
        assert settings["finetune_steps"] * 32 == 2_000_000


# -- the classifier --------------------------------------------------------------------


def test_seen_labels_keep_the_probabilities_of_the_classifier(fitted):
    expected = fitted.classifier_.predict_proba(TEXTS[:5])
    np.testing.assert_allclose(fitted.predict_proba(TEXTS[:5])[:, :3], expected)


def test_any_classifier_fitted_or_not():
    pipeline = make_pipeline(TfidfVectorizer(), MultiOutputClassifier(LogisticRegression()))
    unfitted = lw.XML0(pipeline, encoder="tfidf", random_state=0).fit(TEXTS, Y)
    assert unfitted.predict_proba(["fish in the sea"]).argmax() == 0
    trained = pipeline.fit(TEXTS, Y.to_numpy())
    fitted = lw.XML0.from_fitted(
        trained, SEEN, encoder="tfidf", X=TEXTS, Y=Y, random_state=0, threshold="tuned"
    )
    assert fitted.classifier_ is trained
    ranked = fitted.add_labels(["camel", "wave"]).rank(["camel sand desert"], 1, among="unseen")
    assert ranked[0][0][0] == "camel"
    by_id = lw.XML0("mlknn", encoder="tfidf", random_state=0).set_params(classifier="br")
    assert by_id.fit(TEXTS, Y).predict_proba(["fish in the sea"]).argmax() == 0
    with pytest.raises(InputError, match="'attentionxm'"):
        lw.XML0("attentionxm", encoder="tfidf").fit(TEXTS, Y)
    function = lw.XML0LF.from_fitted(Constant(0.9, 0.1, 0.2).predict_proba, SEEN, encoder=Table())
    assert function.add_labels("oasis").predict_proba(["x"]).shape == (1, 4)


def test_a_fitted_rule_is_kept():
    inner = lw.TextClassifier(lw.make("mlknn", k=3), threshold="tuned").fit(TEXTS, Y)
    model = lw.XML0.from_fitted(inner, encoder="tfidf", X=TEXTS)
    assert model.threshold_ is inner.threshold_
    assert model.predict_labels(["fish wave sea"])[0] == ["sea life"]


def test_features_with_label_fusion_alone():
    X = np.eye(3)[np.arange(30) % 3]
    labels = lw.as_labels(X, names=SEEN)
    model = lw.XML0LF(lw.make("mlknn", k=1), encoder="tfidf", random_state=0).fit(X, labels)
    model.add_labels(["sea", "street"])
    assert model.rank(X[:3], 1, among="unseen")[2][0][0] == "street"
    with pytest.raises(InputError, match="list of texts"):
        lw.XML0(encoder="tfidf").fit(X, labels)


def test_the_published_form_is_expressible_by_settings():
    published = lw.XML0.published().get_params(deep=False)
    inside = ["classifier__max_words=500000", "classifier__tree_above=100000"]
    settings = ["classifier=attentionxml", *inside, "finetune=full", "finetune_steps=62500"]
    model = Recipe.checked("xml0", parse_settings(settings), seed=0).make()
    assert isinstance(model.classifier, lw.AttentionXML)
    assert model.classifier.get_params() == published["classifier"].get_params()
    changed = {"classifier", "threshold", "random_state"}
    rest = {name: value for name, value in published.items() if name not in changed}
    assert rest.items() <= model.get_params(deep=False).items()


# -- ranking and labels that come and go -----------------------------------------------


def test_ranking_of_groups(fitted):
    every = fitted.rank(["fish in the sea"], 9)[0]
    assert {name for name, _ in every} == {*SEEN, "fish", "sand"}
    assert [p for _, p in every] == sorted((p for _, p in every), reverse=True)
    unseen = fitted.rank(["fish in the sea"], 9, among="unseen")[0]
    assert [name for name, _ in unseen] == ["fish", "sand"]
    assert len(fitted.rank(["x"], 2, among="seen")[0]) == 2
    with pytest.raises(InputError, match="among is one of"):
        fitted.rank(["x"], among="new")


def test_a_removed_seen_label_is_ignored():
    model = lw.XML0LF.from_fitted(Constant(0.9, 0.2, 0.7), encoder=Table()).add_labels("harbour")
    model.remove_labels("sea life")
    assert list(model.label_names_) == ["desert land", "city street", "harbour"]
    ((one,),) = model.explain(["x"], 1)
    assert one.because_of == [("city street", 0.7)]
    np.testing.assert_allclose(model.predict_proba(["x"])[0, :2], [0.2, 0.7], atol=1e-6)
    with pytest.raises(InputError, match="last label"):
        model.remove_labels(["desert land", "city street", "harbour"])


def test_a_new_name_is_a_new_text():
    model = lw.XML0LF.from_fitted(Constant(0.9, 0.2, 0.1), encoder=Table()).add_labels("harbour")
    before = model.predict_proba(["x"])[0, 3]
    model.rename_label("harbour", "fish")
    assert model.predict_proba(["x"])[0, 3] > before
    with pytest.raises(InputError, match="'sea life' is already seen"):
        model.rename_label("fish", "sea life")


@pytest.mark.parametrize(
    ("names", "descriptions", "message"),
    [
        ("", None, "the label '' has no text"),
        (["::"], None, "has no text"),
        (["moon", "moon"], None, "'moon' is given twice"),
        (["sea life"], None, "'sea life' is already seen"),
        (["fish"], None, "'fish' is already unseen"),
        ([*(f"moon {i}" for i in range(9)), "fish"], None, "'fish' is already unseen"),
        (["moon"], ["a", "b"], "there are 2 descriptions for 1 labels"),
        (["moon"], {"mars": "red"}, "a description of 'mars'"),
        ([3], None, "a label name is a text"),
    ],
)
def test_bad_labels_are_refused(fitted, names, descriptions, message):
    n_labels = len(fitted.label_names_)
    with pytest.raises(InputError, match=message):
        fitted.add_labels(names, descriptions)
    assert len(fitted.label_names_) == n_labels == len(fitted.table_.rows)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["moon", "moon"], "'moon' is given twice"),
        (["moon", "--"], "'--' has no text"),
    ],
)
def test_bad_labels_of_fit_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        lw.TFIDF().fit(TEXTS, Y, labels=labels)


def test_a_label_of_fit_that_has_examples_gets_its_description():
    model = lw.TFIDF().fit(TEXTS, Y, labels={"sea life": "fish", "moon": ""})
    assert model.label_descriptions_ == {"sea life": "fish"}
    assert model.unseen_labels_ == ["moon"]


@pytest.mark.parametrize("method", [lw.XML0LF, lw.ConSE])
def test_without_a_predicted_label_and_without_text_the_labels_keep_their_order(method):
    model = method.from_fitted(Constant(0.1, 0.1, 0.1), encoder=Table(), min_probability=0.5)
    model.add_labels(["oasis", "harbour", "fish"])
    ranked = model.rank(["fish"], 3, among="unseen")[0]
    assert [name for name, _ in ranked] == ["oasis", "harbour", "fish"]
    assert len({p for _, p in ranked}) == 1
    for wrong, message in (([], "X holds no text"), ([None], "row 0 is NoneType")):
        with pytest.raises(InputError, match=message):
            model.rank(wrong)


def test_an_empty_document_is_similar_to_nothing():
    model = lw.XML0.from_fitted(Constant(0.9, 0.2, 0.7), encoder=Table()).add_labels("harbour")
    for text in ("", "  "):
        ((one,),) = model.explain([text], 1)
        assert one.similarity == 0
        assert one.fusion > 0  # the classifier still answers


def test_many_labels_go_at_once():
    many = [f"moon {i}" for i in range(9)]
    model = lw.TFIDF().fit(TEXTS, Y, labels=[*many, "fish"])
    with pytest.raises(InputError, match="there is no label 'mars'"):
        model.remove_labels([*many, "mars"])
    assert list(model.remove_labels(many).unseen_labels_) == ["fish"]


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="one threshold per label"):
        lw.XML0(encoder="tfidf", threshold="per-label").fit(TEXTS, Y)
    with pytest.raises(InputError, match="does not have the names"):
        lw.XML0LF.from_fitted(lambda X: X, encoder=Table())
    with pytest.raises(InputError, match="has to be tuned"):
        lw.XML0LF.from_fitted(Constant(1, 0, 0), encoder=Table(), threshold="tuned")
    odd = lw.XML0LF.from_fitted(Constant(0.5, np.nan, 0), encoder=Table())
    with pytest.raises(InputError, match="not finite"):
        odd.predict_proba(["x"])
    narrow = lw.XML0LF.from_fitted(Constant(0.5, 0.1), SEEN, encoder=Table())
    with pytest.raises(InputError, match=r"shape \(1, 2\) for 3 labels"):
        narrow.predict_proba(["x"])


def test_labels_survive_saving(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    assert loaded.unseen_labels_ == ["fish", "sand"]
    assert loaded.label_descriptions_ == {"fish": "sea"}
    assert loaded.explain(TEXTS[:3]) == fitted.explain(TEXTS[:3])


def test_an_encoder_of_another_checksum_is_refused(tiny_encoder, tmp_path):
    embedder = lw.SentenceEmbedder(tiny_encoder, cache=False)
    model = lw.XML0(encoder=embedder, random_state=0).fit(TEXTS, Y)
    model.add_labels("fish").save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model", trusted=[tiny_encoder])
    np.testing.assert_allclose(loaded.predict_proba(TEXTS[:3]), model.predict_proba(TEXTS[:3]))
    loaded.encoder_.checksum_ = "f" * 64
    with pytest.raises(InputError, match="is not the one that this model was made with"):
        loaded.add_labels("sand")
