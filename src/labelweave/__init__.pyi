"""The public names, for type checkers and editors: the package imports them when first used.

A method that is not listed here works all the same, and is `Any` to a type checker.
"""

from typing import Any

from labelweave import base as base
from labelweave import calibration as calibration
from labelweave import data as data
from labelweave import exceptions as exceptions
from labelweave import images as images
from labelweave import known as known
from labelweave import labels as labels
from labelweave import metrics as metrics
from labelweave import model_selection as model_selection
from labelweave import nn as nn
from labelweave import persistence as persistence
from labelweave import registry as registry
from labelweave import testing as testing
from labelweave import text as text
from labelweave import thresholds as thresholds
from labelweave.audit import audit as audit
from labelweave.calibration import CalibratedMultiLabel as CalibratedMultiLabel
from labelweave.data.catalog import list_datasets as list_datasets
from labelweave.data.catalog import load_dataset as load_dataset
from labelweave.data.corrections import apply_corrections as apply_corrections
from labelweave.data.dataset import Dataset as Dataset
from labelweave.data.images.collection import Images as Images
from labelweave.data.reading import read_dataset as read_dataset
from labelweave.dependent.asl import ASL as ASL
from labelweave.dependent.boosted_trees import BoostedTrees as BoostedTrees
from labelweave.dependent.br import BinaryRelevance as BinaryRelevance
from labelweave.dependent.c2ae import C2AE as C2AE
from labelweave.dependent.cgmvae import CGMVAE as CGMVAE
from labelweave.dependent.chain import ClassifierChain as ClassifierChain
from labelweave.dependent.chain_ensemble import EnsembleOfChains as EnsembleOfChains
from labelweave.dependent.ctran import CTran as CTran
from labelweave.dependent.extra_trees import ExtraTrees as ExtraTrees
from labelweave.dependent.haram import HARAM as HARAM
from labelweave.dependent.lamp import LaMP as LaMP
from labelweave.dependent.ls_svm import LSSVM as LSSVM
from labelweave.dependent.mlgcn import MLGCN as MLGCN
from labelweave.dependent.mlknn import MLkNN as MLkNN
from labelweave.dependent.mlp import MLP as MLP
from labelweave.dependent.mpvae import MPVAE as MPVAE
from labelweave.dependent.mulsupcon import MulSupCon as MulSupCon
from labelweave.dependent.ofcc import OFCC as OFCC
from labelweave.dependent.powerset import LabelPowerset as LabelPowerset
from labelweave.dependent.rakel import RAkEL as RAkEL
from labelweave.dependent.rbcc import RBCC as RBCC
from labelweave.dependent.sleec import SLEEC as SLEEC
from labelweave.dependent.weave import Weave as Weave
from labelweave.images.classifier import ImageClassifier as ImageClassifier
from labelweave.images.encoder import ImageEncoder as ImageEncoder
from labelweave.labels import LabelMatrix as LabelMatrix
from labelweave.labels import as_labels as as_labels
from labelweave.metrics.evaluation import evaluate as evaluate
from labelweave.nn.image_network import ResNet as ResNet
from labelweave.partial.assume_negative import AssumeNegative as AssumeNegative
from labelweave.partial.assume_negative import SmoothedAssumeNegative as SmoothedAssumeNegative
from labelweave.partial.assume_negative import WeakAssumeNegative as WeakAssumeNegative
from labelweave.partial.cls import CLS as CLS
from labelweave.partial.co_teaching import CoTeaching as CoTeaching
from labelweave.partial.co_teaching import CoTeachingPlus as CoTeachingPlus
from labelweave.partial.co_teaching import Decoupling as Decoupling
from labelweave.partial.co_teaching import JoCoR as JoCoR
from labelweave.partial.cross_em import CrossFitEM as CrossFitEM
from labelweave.partial.em_apl import EMAPL as EMAPL
from labelweave.partial.em_forest import EMForest as EMForest
from labelweave.partial.epr import EPR as EPR
from labelweave.partial.gr import GR as GR
from labelweave.partial.hill import Hill as Hill
from labelweave.partial.large_loss import LargeLossCorrection as LargeLossCorrection
from labelweave.partial.large_loss import LargeLossForGood as LargeLossForGood
from labelweave.partial.large_loss import LargeLossRejection as LargeLossRejection
from labelweave.partial.role import ROLE as ROLE
from labelweave.partial.splc import SPLC as SPLC
from labelweave.persistence.model import load as load
from labelweave.persistence.model import save as save
from labelweave.registry import list_methods as list_methods
from labelweave.registry import make as make
from labelweave.report import report as report
from labelweave.scattered.aka import AKA as AKA
from labelweave.scattered.ant import ANT as ANT
from labelweave.scattered.bl import BL as BL
from labelweave.scattered.cfl import CFL as CFL
from labelweave.scattered.fka import FKA as FKA
from labelweave.scattered.smoothed_union import SmoothedUnion as SmoothedUnion
from labelweave.scattered.tc import TC as TC
from labelweave.scattered.teacher import Teacher as Teacher
from labelweave.scattered.union import TeacherUnion as TeacherUnion
from labelweave.text.classifier import TextClassifier as TextClassifier
from labelweave.text.fast import FastEmbedder as FastEmbedder
from labelweave.text.sentence import SentenceEmbedder as SentenceEmbedder
from labelweave.text.tfidf import TfidfEmbedder as TfidfEmbedder
from labelweave.unseen.attentionxml import AttentionXML as AttentionXML
from labelweave.unseen.conse import ConSE as ConSE
from labelweave.unseen.sbert import SBERT as SBERT
from labelweave.unseen.tf_idf import TFIDF as TFIDF
from labelweave.unseen.xml0 import XML0 as XML0
from labelweave.unseen.xml0_lf import XML0LF as XML0LF
from labelweave.unseen.zestxml import ZestXML as ZestXML

__version__: str

def __getattr__(name: str) -> Any: ...
