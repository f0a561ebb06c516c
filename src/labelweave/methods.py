"""The table of all methods.

Each method is one row: its id on the command line, its class, one line on what it does, and the
paper it comes from. The table is plain text, so listing the methods imports neither the methods
nor torch. Other packages add methods through the entry-point group ``labelweave.methods``
(``my-id = "my_package.module:MyClass"``).
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from labelweave.exceptions import InputError, LabelweaveWarning

__all__ = [
    "ROOMS",
    "WRAPPERS",
    "Method",
    "get_class",
    "list_methods",
    "make",
    "make_part",
    "method_of",
]

ROOMS = ("dependent", "partial", "scattered", "unseen")
PLUGIN_GROUP = "labelweave.methods"


@dataclass(frozen=True)
class Method:
    """Where a method lives and what it is, known without importing it."""

    id: str
    room: str
    module: str
    class_name: str
    summary: str
    paper: str = ""

    def load(self) -> type:
        """Import the class."""
        return getattr(importlib.import_module(self.module), self.class_name)


def _method(id: str, place: str, summary: str, paper: str = "") -> Method:
    """A row of the table; `place` is ``"package.module:Class"`` inside labelweave."""
    module, _, class_name = place.partition(":")
    room = module.partition(".")[0]
    return Method(
        id, room if room in ROOMS else "wrapper", f"labelweave.{module}", class_name, summary, paper
    )


# fmt: off
METHODS = (
    # Dependent labels: annotated in full.
    _method("asl", "dependent.asl:ASL",
            "multi-layer perceptron with the asymmetric loss",
            "Ridnik et al., ICCV 2021"),
    _method("boosted-trees", "dependent.boosted_trees:BoostedTrees",
            "histogram gradient boosting, one ensemble per label"),
    _method("br", "dependent.br:BinaryRelevance",
            "binary relevance: one scikit-learn classifier per label"),
    _method("c-gmvae", "dependent.cgmvae:CGMVAE",
            "Gaussian-mixture variational autoencoder with contrastive learning",
            "Bai, Kong and Gomes, ICML 2022"),
    _method("c-tran", "dependent.ctran:CTran",
            "transformer over features and labels, some of which may be known",
            "Lanchantin et al., CVPR 2021"),
    _method("c2ae", "dependent.c2ae:C2AE",
            "canonical-correlated autoencoder of features and labels",
            "Yeh et al., AAAI 2017"),
    _method("chain", "dependent.chain:ClassifierChain",
            "classifier chain: each classifier sees the labels before its own",
            "Read et al., Machine Learning 2011"),
    _method("chain-ensemble", "dependent.chain_ensemble:EnsembleOfChains",
            "the mean of classifier chains in random orders",
            "Read et al., Machine Learning 2011"),
    _method("extra-trees", "dependent.extra_trees:ExtraTrees",
            "extra trees or a random forest over all labels together"),
    _method("haram", "dependent.haram:HARAM",
            "adaptive resonance: clusters of rows with one label set, ranked by match",
            "Benites and Sapozhnikova, ICDM Workshops 2015"),
    _method("label-powerset", "dependent.powerset:LabelPowerset",
            "one classifier whose classes are the label sets"),
    _method("lamp", "dependent.lamp:LaMP",
            "label message passing: attention from features and among labels",
            "Lanchantin, Sekhon and Qi, ECML PKDD 2019"),
    _method("ls-svm", "dependent.ls_svm:LSSVM",
            "least-squares support vector machine, one kernel for all labels"),
    _method("ml-gcn", "dependent.mlgcn:MLGCN",
            "graph convolutions over label co-occurrence produce the classifiers",
            "Chen et al., CVPR 2019"),
    _method("mlknn", "dependent.mlknn:MLkNN",
            "labels of the k nearest neighbours, combined by Bayes' rule",
            "Zhang and Zhou, Pattern Recognition 2007"),
    _method("mlp", "dependent.mlp:MLP",
            "multi-layer perceptron with binary cross-entropy, ASL or another loss"),
    _method("mpvae", "dependent.mpvae:MPVAE",
            "aligned variational autoencoders with a multivariate probit model",
            "Bai, Kong and Gomes, IJCAI 2020"),
    _method("mulsupcon", "dependent.mulsupcon:MulSupCon",
            "contrastive pretraining over shared labels, then a linear layer",
            "Zhang and Wu, AAAI 2024"),
    _method("ofcc", "dependent.ofcc:OFCC",
            "order-free classifier chain: an LSTM over its own predictions",
            "Thadajarassiri et al., AAAI 2023"),
    _method("rakel", "dependent.rakel:RAkEL",
            "label powersets over small random sets of labels",
            "Tsoumakas, Katakis and Vlahavas, TKDE 2011"),
    _method("rbcc", "dependent.rbcc:RBCC",
            "recurrent classifier chain along a Bayesian network of labels",
            "Gerych et al., NeurIPS 2021"),
    _method("sleec", "dependent.sleec:SLEEC",
            "sparse local embeddings: nearest neighbours in a space that keeps label neighbours",
            "Bhatia et al., NeurIPS 2015"),
    _method("weave", "dependent.weave:Weave",
            "the default: trees, networks and neighbours, stacked"),
    # Partial labels: some positives were never annotated.
    _method("an", "partial.assume_negative:AssumeNegative",
            "assume negative: unannotated entries count as negative",
            "Cole et al., CVPR 2021"),
    _method("an-ls", "partial.assume_negative:SmoothedAssumeNegative",
            "assume negative with label smoothing",
            "Cole et al., CVPR 2021"),
    _method("wan", "partial.assume_negative:WeakAssumeNegative",
            "weak assume negative: an unannotated entry has weight 1 / (labels - 1)",
            "Cole et al., CVPR 2021"),
    _method("cls", "partial.cls:CLS",
            "co-label selection: two networks remove each other's likely false negatives",
            "AAAI 2025"),
    _method("cls+", "partial.cls_plus:CLSPlus",
            "co-label selection with soft targets, entry weights, label evidence, estimated rates"),
    _method("co-teaching", "partial.co_teaching:CoTeaching",
            "two networks select rows of small loss for each other",
            "Han et al., NeurIPS 2018"),
    _method("co-teaching+", "partial.co_teaching_plus:CoTeachingPlus",
            "co-teaching on the rows where the two networks disagree",
            "Yu et al., ICML 2019"),
    _method("cross-em", "partial.cross_em:CrossFitEM",
            "networks trained on folds estimate each other's missing labels, then train again"),
    _method("decoupling", "partial.decoupling:Decoupling",
            "two networks learn only from rows where they disagree",
            "Malach and Shalev-Shwartz, NeurIPS 2017"),
    _method("em-apl", "partial.em_apl:EMAPL",
            "entropy maximisation, then pseudo-labels for confident negatives",
            "Zhou et al., ECCV 2022"),
    _method("em-forest", "partial.em_forest:EMForest",
            "cross-em averaged with trees trained on its soft targets"),
    _method("epr", "partial.epr:EPR",
            "expected positive regularisation: a loss on the number of positives per row",
            "Cole et al., CVPR 2021"),
    _method("gr", "partial.gr:GR",
            "generalized robust loss, between cross-entropy and absolute error",
            "Chen et al., IJCAI 2024"),
    _method("hill", "partial.hill:Hill",
            "Hill loss: less weight for negatives that look positive",
            "Zhang et al., 2021"),
    _method("jocor", "partial.jocor:JoCoR",
            "two networks, regularised to agree, learn from rows of small joint loss",
            "Wei et al., CVPR 2020"),
    _method("ll-cp", "partial.large_loss:LargeLossPermanent",
            "large loss matters: entries of large loss become positive permanently",
            "Kim et al., CVPR 2022"),
    _method("ll-ct", "partial.large_loss:LargeLossCorrection",
            "large loss matters: entries of large loss become positive for this step",
            "Kim et al., CVPR 2022"),
    _method("ll-r", "partial.large_loss:LargeLossRejection",
            "large loss matters: unannotated entries of large loss are ignored",
            "Kim et al., CVPR 2022"),
    _method("role", "partial.role:ROLE",
            "online label estimation: the training labels are learnt as well",
            "Cole et al., CVPR 2021"),
    _method("splc", "partial.splc:SPLC",
            "self-paced loss correction: a probable negative counts as positive",
            "Zhang et al., 2021"),
    # Scattered labels: locked in several trained models.
    _method("aka", "scattered.aka:AKA",
            "adaptive knowledge amalgamation: one network per label, then a student",
            "Shen et al., ICCV 2019"),
    _method("ant", "scattered.ant:ANT",
            "adaptive knowledge transfer: a student of predictions that teachers revised",
            "Thadajarassiri et al., AAAI 2023"),
    _method("ant+", "scattered.ant_plus:ANTPlus",
            "ANT with synthetic rows, and logits shifted to the label prevalence"),
    _method("bl", "scattered.bl:BL",
            "student of the teachers' majority vote, the baseline"),
    _method("cfl", "scattered.cfl:CFL",
            "common feature learning: the student's features align with the teachers'",
            "Luo et al., IJCAI 2019"),
    _method("fka", "scattered.fka:FKA",
            "filtered knowledge amalgamation: student layers replace the teachers' layers",
            "Ye et al., IJCAI 2019"),
    _method("distilled-union", "scattered.distilled_union:DistilledUnion",
            "student of the smoothed union on many mixed rows"),
    _method("smoothed-union", "scattered.smoothed_union:SmoothedUnion",
            "the union of teachers, fitted to label prevalence and the number of labels"),
    _method("tc", "scattered.tc:TC",
            "student of the teachers' mean logits, with learnt weights where labels are known",
            "Thadajarassiri et al., AAAI 2021"),
    _method("union", "scattered.union:TeacherUnion",
            "the teachers' predictions combined per label, without a student"),
    # Unseen labels: a name, no training example.
    _method("attentionxml", "unseen.attentionxml:AttentionXML",
            "BiLSTM with one attention per label, and a label tree for many labels",
            "You et al., NeurIPS 2019"),
    _method("conse", "unseen.conse:ConSE",
            "labels near the mean embedding of the predicted labels",
            "Norouzi et al., ICLR 2014"),
    _method("label-tree", "unseen.label_tree:LabelTree",
            "linear classifiers in trees over the labels: the default for many labels"),
    _method("sbert", "unseen.sbert:SBERT",
            "labels whose text is similar to the document",
            "Reimers and Gurevych, EMNLP 2019"),
    _method("tf-idf", "unseen.tf_idf:TFIDF",
            "labels whose words occur in the document (cosine of TF-IDF weights)"),
    _method("xml0", "unseen.xml0:XML0",
            "labels without examples: label fusion and semantic similarity",
            "Ostapuk et al., 2024"),
    _method("xml0+", "unseen.xml0_plus:XML0Plus",
            "XML0 with ConSE, words and ranks as further scores, combined by a stacker"),
    _method("xml0-lf", "unseen.xml0_lf:XML0LF",
            "XML0's label fusion alone, without the text of the document",
            "Ostapuk et al., 2024"),
    _method("zestxml", "unseen.zestxml:ZestXML",
            "a sparse map from document words to label words",
            "Gupta et al., KDD 2021"),
)

# Estimators that stand around a method or before it. Model folders name them by these ids.
WRAPPERS = (
    _method("text", "text.classifier:TextClassifier",
            "TF-IDF weights or embeddings of texts before any classifier"),
    _method("sentence-embedder", "text.sentence:SentenceEmbedder",
            "embeddings of texts by a sentence encoder"),
    _method("fast-embedder", "text.fast:FastEmbedder",
            "embeddings of texts by a table of token vectors"),
    _method("tfidf-embedder", "text.tfidf:TfidfEmbedder",
            "TF-IDF weights of texts"),
    _method("table-encoder", "tables.encoder:TableEncoder",
            "features of mixed tables"),
    _method("image", "images.image_classifier:ImageClassifier",
            "features of images by a frozen network before any classifier"),
    _method("image-encoder", "images.encoder:ImageEncoder",
            "features of images by a frozen network"),
    _method("resnet", "nn.image_network:ResNet",
            "settings of a residual network for images"),
    _method("efficientnet-lite", "nn.image_network:EfficientNetLite",
            "settings of an EfficientNet-lite for images"),
    _method("onnx-network", "images.onnx_network:OnnxNetwork",
            "settings of a network for images in an ONNX file"),
    _method("calibrated", "calibration:CalibratedMultiLabel",
            "calibrated probabilities of any classifier"),
    _method("remote", "scattered._amalgamation.remote_model:RemoteModel",
            "a model that is reached by HTTP, as a teacher"),
    _method("logit-ridge", "scattered._amalgamation.logit_ridge:LogitRidge",
            "ridge regression of logits, a linear student"),
    _method("pipeline", "label_pipeline:LabelPipeline",
            "a scikit-learn pipeline that ends in a classifier of labelweave"),
)
# fmt: on


@cache
def _methods() -> dict[str, Method]:
    """All methods by id; a plug-in that takes an id that is in use is ignored with a warning."""
    methods = {method.id: method for method in METHODS}
    in_use = methods | {wrapper.id: wrapper for wrapper in WRAPPERS}
    for method in _plugin_methods():
        if method.id in in_use:
            other = in_use[method.id]
            _ignore_plugin(
                f"{method.module}:{method.class_name}",
                f"its id {method.id!r} is that of {other.module}:{other.class_name}",
            )
        else:
            methods[method.id] = in_use[method.id] = method
    return methods


def _plugin_methods() -> list[Method]:
    methods = []
    for point in metadata.entry_points(group=PLUGIN_GROUP):
        if not point.pattern.fullmatch(point.value) or not point.attr:
            _ignore_plugin(point.name, f"{point.value!r} does not have the form 'module:Class'")
            continue
        source = point.dist.name if point.dist else point.module
        methods.append(Method(point.name, "plug-in", point.module, point.attr, f"from {source}"))
    return methods


def _ignore_plugin(name: str, reason: str) -> None:
    warnings.warn(
        f"the plug-in {name} is ignored, because {reason}", LabelweaveWarning, stacklevel=2
    )


def list_methods(room: str | None = None) -> list[Method]:
    """All methods, or those of one room, in the order of their ids.

    >>> "mlknn" in [method.id for method in list_methods("dependent")]
    True
    """
    if room is not None and room not in (*ROOMS, "plug-in"):
        raise InputError(f"there is no room {room!r}: choose one of {', '.join(ROOMS)}")
    chosen = (m for m in _methods().values() if room is None or m.room == room)
    return sorted(chosen, key=lambda method: method.id)


def get_class(id: str) -> type:
    """The class of a method, imported now.

    >>> get_class("mlknn").__name__
    'MLkNN'
    """
    method = _methods().get(id)
    if method is None:
        import difflib

        near = difflib.get_close_matches(id, _methods(), n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "; `labelweave methods` lists them"
        raise InputError(f"there is no method {id!r}{hint}")
    return method.load()


def make(id: str, **parameters: Any) -> Any:
    """An estimator of this method with these parameters.

    >>> make("mlknn", k=5).k
    5
    """
    return get_class(id)(**parameters)


def make_part(id: str, **parameters: Any) -> Any:
    """An estimator that stands around a method or before it.

    >>> make_part("tfidf-embedder", max_words=2)
    TfidfEmbedder(max_words=2)
    """
    return next(wrapper for wrapper in WRAPPERS if wrapper.id == id).load()(**parameters)


def method_of(estimator: Any) -> Method | None:
    """The row of the table for an estimator's class, or None if it has none.

    A subclass of a method's class is not that method.

    >>> method_of(make("mlknn")).id
    'mlknn'
    """
    cls = type(estimator)
    for method in (*_methods().values(), *WRAPPERS):
        if method.class_name != cls.__name__:
            continue
        # A plug-in may name a module that only re-exports the class.
        if method.module == cls.__module__ or (method.room == "plug-in" and method.load() is cls):
            return method
    return None


def public_classes() -> dict[str, Method]:
    """Class name to method, for the lazy names of the package.

    A plug-in's class never hides a class of the library that has the same name.
    """
    ours_last = sorted(_methods().values(), key=lambda method: method.room != "plug-in")
    return {method.class_name: method for method in ours_last}
