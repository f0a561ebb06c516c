"""What all tests share: one thread each, and the data sets where they are to be had."""

import os

# Before numpy and torch start their thread pools: many workers on few cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, however slow the machine is.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory) -> None:
    """Embeddings and downloads of the tests are theirs: what a user has cached stays alone."""
    os.environ["LABELWEAVE_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def quick_plots(monkeypatch) -> None:
    """Plots are painted but not laid out, which takes most of the time."""
    empty = '<svg viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"></svg>'
    monkeypatch.setattr("labelweave.plotting._svg_of", lambda figure: empty)


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder of LABELWEAVE_DATA; the test is skipped where it is not set."""
    folder = os.environ.get("LABELWEAVE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LABELWEAVE_DATA does not point to a folder of data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Path:
    """The folder of a sentence-transformers model with random weights: 16 numbers per text."""
    models = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    library = pytest.importorskip("sentence_transformers")
    import torch
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers import models as tokens
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["sea", "sun", "rain", "deep", "hot", "wet", "the", "and", "blue", "old"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters]
    vocabulary += [f"##{letter}" for letter in letters]
    numbers = {token: i for i, token in enumerate(vocabulary)}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=64,
        )
        BertModel(config).save_pretrained(folder / "bert")
    pieces = Tokenizer(tokens.WordPiece(numbers, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {
        f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")
    }
    PreTrainedTokenizerFast(tokenizer_object=pieces, **special).save_pretrained(folder / "bert")
    transformer = models.Transformer(str(folder / "bert"), max_seq_length=32)
    pooling = models.Pooling(16, pooling_mode="mean")
    library.SentenceTransformer(modules=[transformer, pooling], device="cpu").save(
        str(folder / "model")
    )
    return folder / "model"
