"""Change the saved folders of every method at random, and load what results.

    python tests/fuzz/fuzz_folders.py --mutations 10000     # `make fuzz-folders`
    python tests/fuzz/fuzz_folders.py --only mlknn --seed 5 --mutations 1000

Each changed folder must be refused in one sentence, at loading, prediction or explanation, or give
a model whose probabilities are numbers: those of the original, unless its files were changed
together with their hashes. Another exception, a crash, more than 10 seconds, more than 2 GB, code
that is run, a process or a connection that is started, or a file that is opened outside the folder
is a finding: it is printed, and the command ends with status 1. Models are loaded in processes of
their own, together with what `labelweave train` stores beside them.
"""

import argparse
import collections
import importlib
import io
import json
import os
import pickle
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import asdict
from pathlib import Path

import folder_mutations
import numpy as np

SECONDS, BYTES = 10, 2 << 30
ACCEPTED = ("refused", "refused at prediction", "equal", "other model")
ORIGIN = {"data": "x", "source": "x.csv", "reading": {}, "fingerprint": None, "feature_names": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="id of a saved model; several are separated by commas")
    parser.add_argument("--models", type=Path, help="keep the saved models in this folder")
    arguments = parser.parse_args()
    import_all()
    with tempfile.TemporaryDirectory() as temporary:
        models = arguments.models or Path(temporary)
        folders = saved_models(models, arguments.only and arguments.only.split(","))
        sys.exit(fuzz(folders, arguments.mutations, arguments.seed))


def fuzz(folders: list[Path], n_mutations: int, seed: int) -> bool:
    """Run the mutations of all models, print a table, and return whether there are findings."""
    totals: collections.Counter[str] = collections.Counter()
    findings = 0
    header = ("refused", "at prediction", "equal", "other", "findings")
    print(
        f"{'model':<22}" + "".join(f"{name:>14}" for name in header) + f"{'peak MB':>9}", flush=True
    )
    for k, folder in enumerate(folders):
        share = n_mutations * (k + 1) // len(folders) - n_mutations * k // len(folders)
        counts, failed, peak = of_one_model(folder, seed, share)
        totals.update(counts)
        findings += len(failed)
        numbers = [*(counts[name] for name in ACCEPTED), len(failed)]
        line = "".join(f"{number:>14}" for number in numbers)
        print(f"{folder.name:<22}{line}{peak:>9}", flush=True)
        for text in failed:
            print(f"  finding: {text}", flush=True)
    print(f"{sum(totals.values()) + findings} folders, {dict(totals)}, {findings} findings")
    return findings > 0


def of_one_model(
    folder: Path, seed: int, n_mutations: int
) -> tuple[collections.Counter[str], list[str], int]:
    """Outcomes, findings and peak of memory (MB) of the mutations of one model."""
    counts: collections.Counter[str] = collections.Counter()
    findings: list[str] = []
    peak, start = 0, 0
    while start < n_mutations:
        current = None
        lines, status = _in_a_process(work, folder, seed, start, n_mutations)
        for line in lines:
            start, current, peak = line["k"], line["what"], max(peak, line["peak"])
            if "result" not in line:  # about to be loaded
                continue
            if line["result"] in ACCEPTED:
                counts[line["result"]] += 1
            else:
                findings.append(f"mutation {start} ({current}): {line['result']}")
            start, current = start + 1, None
        if start < n_mutations:
            if current is None:
                raise SystemExit(f"{folder.name} cannot be loaded unchanged")
            findings.append(f"mutation {start} ({current}): ended with status {status()}")
            start += 1
    return counts, findings, peak


def _in_a_process(function, *arguments, patience=12 * SECONDS):
    """Run a function in a forked process; its printed lines, and a function for its status.

    The process is ended if it prints nothing for so many seconds.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.dup2(writing, 1)
            function(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(writing)
    codes: list[int] = []

    def status() -> int:
        if not codes:
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return codes[0]

    return _lines(reading, child, status, patience), status


def _lines(reading, child, status, patience):
    """Yield what a process prints; end it if it is silent for long."""
    buffer = b""
    with os.fdopen(reading, "rb", buffering=0) as file:
        while True:
            if not select.select([file], [], [], patience)[0]:
                os.kill(child, signal.SIGKILL)
            part = file.read(1 << 16)
            if not part:
                break
            *lines, buffer = (buffer + part).split(b"\n")
            yield from map(json.loads, lines)
    status()


# -- the process that loads -------------------------------------------------------------


class TooSlow(BaseException):
    """Raised by the clock."""


def work(model: Path, seed: int, first: int, last: int) -> None:
    """Load the mutations of a model one after the other, and print what results."""
    from labelweave.pipeline.model_folder import open_model

    warnings.simplefilter("ignore")
    rows = pickle.loads((model / "rows.pickle").read_bytes())  # our own file
    unchanged, origin = open_model(str(model / "model"))
    expected = probabilities(unchanged, rows)
    assert np.isfinite(explanation(unchanged, origin.reference, rows)).all()
    limit_memory()
    signal.signal(signal.SIGALRM, _too_slow)
    with tempfile.TemporaryDirectory() as temporary:
        target = Path(temporary) / "changed" / "model"
        target.parent.mkdir()
        watch = Watch(target)
        for k in range(first, last):
            random = np.random.default_rng([seed, k, *model.name.encode()])
            folder = folder_mutations.copied(model / "model", target)
            what = ": ".join(folder_mutations.mutate(folder, random))
            report(k, what)
            with watch:
                result = outcome(folder, rows, expected, what.startswith("crafted"))
            report(k, what, watch.seen[0] if watch.seen else result)


def limit_memory() -> None:
    """Let this process take no more than BYTES beyond what it has now."""
    status = Path("/proc/self/status").read_text()
    used = 1024 * int(re.search(r"VmData:\s+(\d+)", status)[1])
    resource.setrlimit(resource.RLIMIT_DATA, (used + BYTES, used + BYTES))


def report(k: int, what: str, result: str | None = None) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line = {"k": k, "what": what, "peak": peak, **({} if result is None else {"result": result})}
    print(json.dumps(line), flush=True)


def outcome(folder, rows, expected, is_crafted: bool) -> str:
    """Load a folder, predict by it and explain a prediction; return what happened."""
    from labelweave.exceptions import LabelweaveError
    from labelweave.pipeline.model_folder import open_model
    from labelweave.serve.problems import ProblemError

    started = time.process_time()
    signal.alarm(6 * SECONDS)  # of the wall, on a busy machine
    result = "refused"
    try:
        model, origin = open_model(str(folder))
        result = "refused at prediction"
        actual = probabilities(model, rows)
        if not np.isfinite(explanation(model, origin.reference, rows)).all():
            return "not finite in an explanation"
        if not all(np.isfinite(part).all() for part in actual if part.dtype.kind == "f"):
            return "not finite"
        result = "other model"
        same = [part.shape for part in actual] == [part.shape for part in expected]
        if same and all(map(np.array_equal, actual, expected)):
            result = "equal"
        elif not is_crafted:
            return "a change was not noticed"
    except LabelweaveError as error:
        if "\n" in str(error):
            return f"more than one line: {error}"
        if "more memory than there is" in str(error):
            return f"out of memory: {''.join(traceback.format_exception(error, limit=-4))}"
    except ProblemError as error:
        if error.status >= 500:
            return f"an internal error of the service: {error}"
    except TooSlow:
        return "too slow"
    except MemoryError:
        return f"{result}: out of memory: {traceback.format_exc(limit=-3)}"
    except ValueError as error:
        if not str(error).startswith("X has "):  # scikit-learn's words for other features
            return f"foreign error: {''.join(traceback.format_exception(error, limit=-4))}"
    except Exception as error:
        return f"foreign error: {''.join(traceback.format_exception(error, limit=-4))}"
    finally:
        signal.alarm(0)
    seconds = time.process_time() - started
    return result if seconds < SECONDS else f"{seconds:.0f} s"


def probabilities(model, rows) -> list[np.ndarray]:
    """What the service asks of a model; the features of a transformer."""
    from sklearn.base import is_classifier

    if not is_classifier(model):
        features = model.transform(rows)
        return [features.toarray() if hasattr(features, "toarray") else np.asarray(features)]
    return [model.predict_proba(rows), model.predict(rows)]


def explanation(model, reference, rows) -> np.ndarray:
    """The changes of a prediction by the typical values of the folder, as a service gives them."""
    from labelweave.explaining import explain_row
    from labelweave.serve.explanations import reference_for
    from labelweave.tables.table import Table

    if reference is None:
        return np.zeros(0)
    X = rows
    if hasattr(rows, "columns"):  # columns that are all numbers are sent as numbers
        is_numeric = (rows.dtypes == np.float64).all()
        X = rows.to_numpy() if is_numeric else Table(rows)
    typical = reference_for(reference, X, getattr(model, "feature_names_in_", None))
    return np.asarray(explain_row(model, X[:1], typical, max_columns=3).changes)


def _too_slow(signum, frame):
    raise TooSlow


class Watch:
    """Notices processes, connections, and files outside the folder that is loaded."""

    def __init__(self, folder: Path) -> None:
        from labelweave.files import cache_folder

        self.seen: list[str] = []
        self._active = False
        places = (folder, sys.prefix, sys.base_prefix, Path(__file__).parents[2], cache_folder())
        self._allowed = tuple(os.path.realpath(place) for place in places)
        sys.addaudithook(self._hear)

    def __enter__(self) -> None:
        self.seen.clear()
        self._active = True

    def __exit__(self, *exception: object) -> None:
        self._active = False

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._active:
            return
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork",
                     "socket.connect", "socket.getaddrinfo", "pickle.find_class"):  # fmt: skip
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith((*self._allowed, "/proc/", "/sys/")):
                self.seen.append(f"opened {path}")


# -- the models that are changed --------------------------------------------------------


def saved_models(folder: Path, only: list[str] | None = None) -> list[Path]:
    """Save a small model of each method, of each wrapper, and over parts of scikit-learn."""
    warnings.simplefilter("ignore")
    folders = []
    for name, fit in fits().items():
        if only and name not in only:
            continue
        target = folder / name
        if not (target / "rows.pickle").exists():
            lines, status = _in_a_process(save_one, fit, target, patience=3600)
            if list(lines) or status():
                raise SystemExit(f"{name} cannot be fitted and saved")
        folders.append(target)
    return folders


def save_one(fit, target: Path) -> None:
    """Fit a model, and save it with rows to predict and what `labelweave train` adds."""
    from sklearn.base import is_classifier

    import labelweave as lw
    from labelweave.explaining.reference import reference_rows, reference_to_plain
    from labelweave.pipeline.data_parts import SplitSettings

    model, rows = fit()
    seen = io.BytesIO()
    np.save(seen, np.arange(3, dtype=np.uint64))
    files = {
        "training.json": json.dumps({**ORIGIN, "protocol": asdict(SplitSettings())}).encode(),
        "rows-seen.npy": seen.getvalue(),
    }
    if is_classifier(model) and hasattr(rows, "shape") and len(rows.shape) == 2:
        typical = reference_to_plain(reference_rows(rows))
        files["reference.json"] = json.dumps(typical).encode()
    lw.save(model, target / "model", extra_files=files)
    target.joinpath("rows.pickle").write_bytes(pickle.dumps(rows))


def import_all() -> None:
    """Import what loading imports, so that the processes that load need not."""
    from labelweave.methods import WRAPPERS, list_methods

    for method in (*list_methods(), *WRAPPERS):
        method.load()
    for name in ("faiss", "pandas", "safetensors.torch", "skops.io", "tokenizers"):
        importlib.import_module(name)
    importlib.import_module("labelweave.persistence.native_checks")


def fits():
    """Functions that return a fitted model and rows to predict, by name."""
    from labelweave.methods import list_methods

    functions = {}
    for method in list_methods():
        functions[method.id] = lambda method=method: _fitted(method)
    for name, classifier in _scikit_learn().items():
        functions[f"br-{name}"] = lambda c=classifier: _of_features("br", estimator=c)
    for engine in ("matrix", "faiss"):
        functions[f"mlknn-{engine}"] = lambda e=engine: _of_features("mlknn", neighbors=e)
    functions.update(
        {
            "named-columns": lambda: _of_named_columns(),
            "table": lambda: _of_table("mlp", epochs=2),
            "table-trees": lambda: _of_table("boosted-trees"),
            "table-weights": lambda: _of_table("br"),
            "text": lambda: _of_texts(),
            "text-tfidf": lambda: _of_texts(embedder="tfidf"),
            "text-minilm": lambda: _of_texts(embedder="minilm"),
            "image": lambda: _of_images(),
            "image-encoder": lambda: _of_image_encoder(),
            "calibrated": lambda: _calibrated(),
            "pipeline": lambda: _of_pipeline(),
            "pipeline-texts": lambda: _of_text_pipeline(),
            "one-class-per-row": lambda: _of_classes(),
            "thresholds": lambda: _of_features("mlknn", threshold="tuned"),
        }
    )
    return functions


def _scikit_learn():
    from sklearn import ensemble, naive_bayes, neighbors, neural_network, svm, tree
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    return {
        "tree": tree.DecisionTreeClassifier(max_depth=3),
        "forest": ensemble.RandomForestClassifier(3, max_depth=3),
        "boosting": ensemble.GradientBoostingClassifier(n_estimators=3),
        "histograms": ensemble.HistGradientBoostingClassifier(max_iter=3),
        "neighbors": neighbors.KNeighborsClassifier(),
        "brute": neighbors.KNeighborsClassifier(algorithm="brute"),
        "svc": svm.SVC(probability=True),
        "network": neural_network.MLPClassifier((3,), max_iter=3),
        "bayes": naive_bayes.GaussianNB(),
        "calibrated": CalibratedClassifierCV(tree.DecisionTreeClassifier(max_depth=2), cv=2),
        "pipeline": make_pipeline(
            StandardScaler(), FunctionTransformer(np.tanh), svm.LinearSVC(), verbose=False
        ),
    }


def _of_features(id, **parameters):
    from sklearn.base import clone

    import labelweave as lw
    from labelweave.testing.check_tools import linear

    X, Y = linear()
    parameters = {name: clone(v, safe=False) for name, v in parameters.items()}
    return lw.make(id, **parameters).set_params(random_state=0).fit(X, Y), X[:7]


def _fitted(method):
    from labelweave.testing import briefly_trained, test_instance
    from labelweave.testing.check_tools import fresh, linear
    from labelweave.testing.text_and_image_checks import documents, takes_texts

    if method.room == "scattered":
        return _amalgamated(method.load())
    estimator = fresh(briefly_trained(test_instance(method.load())))
    X, Y = documents() if takes_texts(estimator) else linear()
    return estimator.fit(X, Y), X[:7]


def _amalgamated(cls):
    import labelweave as lw
    from labelweave.labels import as_labels
    from labelweave.testing import briefly_trained, test_instance
    from labelweave.testing.check_tools import linear

    X, Y = linear(120)
    chains = [
        lw.make("ofcc", epochs=2, random_state=0).fit(X, as_labels(Y[:, part], names=names))
        for part, names in (([0, 1], ["a", "b"]), ([1, 2], ["b", "c"]))
    ]
    model = briefly_trained(test_instance(cls)).set_params(random_state=0)
    model.teachers = [
        lw.Teacher(chain, name=name) for name, chain in zip("xy", chains, strict=True)
    ]
    return model.fit(X), X[:7]


def _of_named_columns():
    import pandas as pd

    import labelweave as lw
    from labelweave.testing.check_tools import linear

    X, Y = linear()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    return lw.make("br", random_state=0).fit(frame, Y), frame[:7]


def _of_table(id, **parameters):
    import labelweave as lw
    from labelweave.testing.table_checks import products

    rows, Y = products()
    return lw.make(id, random_state=0, **parameters).fit(rows, Y), rows[:7]


def _of_texts(**parameters):
    import labelweave as lw
    from labelweave.testing.text_and_image_checks import documents
    from labelweave.text import TextClassifier

    texts, Y = documents()
    return TextClassifier(lw.make("mlknn"), **parameters).fit(texts, Y), texts[:7]


def _of_images():
    import labelweave as lw
    from labelweave.images import ImageClassifier, ImageEncoder, ResNet
    from labelweave.testing.text_and_image_checks import pictures

    images, Y = pictures()
    encoder = ImageEncoder(ResNet(size=8, width=4), weights="random", cache=False)
    return ImageClassifier(lw.make("mlknn"), encoder=encoder).fit(images, Y), images[:5]


def _of_image_encoder():
    import labelweave as lw
    from labelweave.images import ResNet
    from labelweave.testing.text_and_image_checks import pictures

    images, Y = pictures()
    model = lw.make("mlp", encoder=ResNet(size=8, width=4), epochs=1, random_state=0)
    return model.fit(images, Y), images[:5]


def _calibrated():
    import labelweave as lw
    from labelweave.methods import make_part
    from labelweave.testing.check_tools import linear

    X, Y = linear()
    return make_part("calibrated", estimator=lw.make("mlknn")).fit(X, Y), X[:7]


def _of_pipeline():
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_selection import SelectKBest
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

    import labelweave as lw
    from labelweave.testing.check_tools import linear

    X, Y = linear()
    table = pd.DataFrame(X, columns=list("abcdef")).assign(g=np.where(X[:, 0] > 0, "x", "y"))
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b", "c"]),
        (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["d"]),
        (OneHotEncoder(handle_unknown="ignore"), ["g"]),
        (TruncatedSVD(2), ["e", "f", "a"]),
    )
    steps = (columns, SelectKBest(k=6), lw.make("mlknn"))
    return make_pipeline(*steps).fit(table, Y[:, 0]), table[:7]


def _of_text_pipeline():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    import labelweave as lw
    from labelweave.testing.text_and_image_checks import documents

    texts, Y = documents()
    return make_pipeline(TfidfVectorizer(), lw.make("br")).fit(texts, Y), texts[:7]


def _of_classes():
    import labelweave as lw
    from labelweave.testing.check_tools import linear

    X, Y = linear()
    return lw.make("mlknn").fit(X, np.array(["low", "high"])[Y[:, 0]]), X[:7]


if __name__ == "__main__":
    main()
