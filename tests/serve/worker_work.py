"""What the workers of the tests do; a process of its own imports this module.

``python worker_work.py`` runs two workers and prints their numbers, until it is killed.
"""

import os
import signal
import socket
import sys
import threading

from labelweave.serve.worker_processes import NOT_STARTED, WorkerProcesses, follow_parent


def answer_with_pid(listening):
    """Send the number of the process to every client."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    follow_parent(lambda: os._exit(0))
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(str(os.getpid()).encode())


def do_not_start(listening):
    sys.exit(NOT_STARTED)


def main():
    workers = WorkerProcesses(2, answer_with_pid, restart_delay=0.01, stop_seconds=30)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def tell():
            pids = set()
            while len(pids) < 2:
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    pids.add(int(connection.recv(100)))
            print(*pids, flush=True)

        threading.Thread(target=tell, daemon=True).start()
        workers.run(listening)


if __name__ == "__main__":
    main()
