"""A farm without agents, for tests of what stands before it."""

import pickle
import queue
import threading

from crosswind import AgentLost
from crosswind.run.agent import load
from crosswind.run.agents import Result

SUMMARY = {"seed": 1, "tasks": 0, "makespan_s": 1.0, "throughput_tasks_per_s": 1.0, "nodes": []}


class InProcess:
    """Stands for a tree of agents: one thread that calls what was submitted, last come first served."""

    lost_after = None  # tasks submitted before all agents are lost

    def __init__(self, platform, point, work, **options):
        self.work, self.waiting, self.done = work, [], queue.Queue()
        self.ready, self.count = threading.Condition(), 0
        self.places = threading.Semaphore(8)
        threading.Thread(target=self._work, daemon=True).start()

    def __enter__(self):
        return self

    def submit(self, task, number=None):
        if InProcess.lost_after is not None and self.count > InProcess.lost_after:
            raise AgentLost("no agent is left")
        self.places.acquire()
        with self.ready:
            number = self.count if number is None else number
            self.waiting.append((number, task.data))
            self.count = number + 1
            self.ready.notify()
            return number

    def _work(self):
        while True:
            with self.ready:
                while not self.waiting:
                    self.ready.wait()
                number, data = self.waiting.pop()
            self.places.release()
            if InProcess.lost_after is not None:
                continue
            ok, output = load(pickle.dumps(self.work.function))(data)
            self.done.put(Result(number, ok, output, "cpu0"))

    def end_of_tasks(self):
        pass

    def recall(self, tasks, timeout_s):
        with self.ready:
            recalled = [number for number, _ in self.waiting if number in tasks]
            self.waiting = [waiting for waiting in self.waiting if waiting[0] not in tasks]
        for _ in recalled:
            self.places.release()
        return recalled

    def news(self):
        return [], [], []

    def results(self, timeout_s=None, *, or_news=False, views=False):
        if InProcess.lost_after is not None and self.count > InProcess.lost_after:
            raise AgentLost("no agent is left")
        try:
            return [self.done.get(timeout=timeout_s)]
        except queue.Empty:
            return []

    def interrupt(self):
        pass

    def ended(self, timeout_s):
        return False

    def close(self):
        return SUMMARY, None
