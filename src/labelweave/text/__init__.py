"""Embedders that turn texts into vectors, and a classifier of texts."""

from labelweave.text.classifier import TextClassifier
from labelweave.text.fast import FastEmbedder
from labelweave.text.sentence import SentenceEmbedder
from labelweave.text.tfidf import TfidfEmbedder

__all__ = ["FastEmbedder", "SentenceEmbedder", "TextClassifier", "TfidfEmbedder"]
