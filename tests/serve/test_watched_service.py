"""The watch of benchmarks/serve_watched.py notices what it is to count."""

import subprocess
import sys
from pathlib import Path

WORK = """
import socket, subprocess, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from serve_watched import Watch
log, folder, other = map(Path, sys.argv[2:])
sys.addaudithook(Watch(log, folder))
(other / "early").write_text("not watched yet")
Path(f"{log}.start").touch()
(folder / "own").write_text("allowed")
import colorsys
(other / "read.py").read_text()
(other / "written").write_text("x")
(other / "written").rename(other / "renamed")
exec(compile("1", str(other / "read.py"), "exec"))
subprocess.run(["true"])
try:
    socket.create_connection(("127.0.0.1", 9), timeout=5)
except OSError:
    pass
import pickle
pickle.loads(pickle.dumps(Path))
"""


def test_the_watch_notices_files_code_processes_and_connections(tmp_path):
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "read.py").write_text("1")
    words = [str(benchmarks), str(folder / "log"), str(folder), str(other)]
    subprocess.run([sys.executable, "-c", WORK, *words], check=True)
    lines = (folder / "log").read_text().splitlines()
    events = [line.partition(" ")[0] for line in lines if "python" not in line.partition(" ")[2]]
    assert [event for event in events if event in ("open", "os.rename", "code")] == [
        "open",
        "open",
        "os.rename",
        "os.rename",
        "code",
    ]
    text = "\n".join(lines)
    assert "subprocess.Popen" in text
    assert "socket.connect" in text
    assert "pickle.find_class" in text
    assert "early" not in text
    assert "own" not in text
    assert "colorsys" not in text
