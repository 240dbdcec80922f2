"""A cluster for tests without Dask: each host a process that does what it is told over its pipes, here or in a
namespace of the testbed.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor

LOOP = """
import pickle, sys
told, answers = sys.stdin.buffer, sys.stdout.buffer
sys.stdout = sys.stderr
while True:
    try:
        function, arguments = pickle.load(told)
    except EOFError:
        break
    try:
        answer = (True, function(*arguments))
    except Exception as error:
        answer = (False, error)
    pickle.dump(answer, answers)
    answers.flush()
"""


class ProcessHosts:
    """Hosts by name and address; `prefix(name)` is what a command begins with that runs there."""

    def __init__(self, hosts, prefix=lambda name: []):
        self.name, self.hosts = "processes", dict(hosts)
        pipe = subprocess.PIPE
        self.processes = {
            name: subprocess.Popen([*prefix(name), sys.executable, "-c", LOOP], stdin=pipe, stdout=pipe)
            for name in self.hosts
        }
        self._threads = {name: ThreadPoolExecutor(1) for name in self.hosts}

    def submit(self, host, function, *arguments) -> Future:
        return self._threads[host].submit(self._call, host, function, arguments)

    def _call(self, host, function, arguments):
        process = self.processes[host]
        pickle.dump((function, arguments), process.stdin)
        process.stdin.flush()
        fine, answer = pickle.load(process.stdout)
        if not fine:
            raise answer
        return answer

    def is_alive(self, host):
        return self.processes[host].poll() is None

    def kill(self, host):
        self.processes[host].kill()
        self.processes[host].wait()

    def close(self):
        for name, process in self.processes.items():
            with contextlib.suppress(BrokenPipeError):  # killed with a call unread
                process.stdin.close()
            self.kill(name)
            self._threads[name].shutdown(wait=True)
            process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
