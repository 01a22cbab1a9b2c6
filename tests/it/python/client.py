#!/usr/bin/env python3
"""A consumer over HTTP with the standard library only: starts, commits, learns of a move at once, goes on.

It stands for an engine with its own way of reading: "reading" here is counting offsets up to the readable end. What
happens is told on standard output, a JSON object a line. It ends when another owner takes the group.

    client.py URL GROUP OWNER TOPIC...
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

BATCH = 20  # offsets of a partition in one batch


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Problem(Exception):
    """An answer that is an error: `body` is the problem details."""

    def __init__(self, body):
        super().__init__(body["detail"])
        self.body = body
        self.name = body["type"].removeprefix("/problems/")


class Tidelog:
    """The HTTP API, for one group."""

    def __init__(self, url, group):
        self.base = f"{url}/v1/groups/{urllib.parse.quote(group, safe='')}"

    def call(self, path, body=None, timeout=70):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Problem(json.load(error)) from None


class Consumer:
    def __init__(self, url, group, owner, topics):
        self.api = Tidelog(url, group)
        self.owner = owner
        self.topics = topics
        self.moved = threading.Event()
        self.start("started")
        threading.Thread(target=self.watch, daemon=True).start()

    def start(self, event):
        """Where to read: the journal decides, and corrects what can't stay."""
        self.moved.clear()  # before it asks: a move that comes meanwhile is not missed
        answer = self.api.call("/start", {"topics": self.topics, "owner": self.owner})
        self.epoch = int(answer["epoch"])
        self.next = {(p["topic"], p["partition"]): int(p["offset"]) for p in answer["positions"]}
        tell(event, epoch=self.epoch, at=self.where(), findings=[f["verdict"] for f in answer["findings"]])

    def where(self):
        return {f"{topic}/{partition}": offset for (topic, partition), offset in sorted(self.next.items())}

    def watch(self):
        """A long poll: an idle consumer too learns of a rollback at once."""
        while True:
            epoch = self.epoch
            try:
                risen = int(self.api.call(f"?epoch_above={epoch}&wait=30s")["epoch"]) > epoch
            except (OSError, Problem):  # the server is away for a moment
                time.sleep(1)
                continue
            if risen:
                self.moved.set()
                while self.epoch == epoch and self.moved.is_set():
                    time.sleep(0.01)

    def batch(self):
        """The next batch: its ranges, and where reading goes on after it."""
        ranges, after = [], dict(self.next)
        for position in self.api.call("/positions")["positions"]:
            at = (position["topic"], position["partition"])
            begin, end = self.next.get(at), position["readable_end"]
            if begin is None or end is None or begin >= int(end):
                continue
            after[at] = min(begin + BATCH, int(end))
            ranges.append({"topic": at[0], "partition": at[1], "from_offset": begin, "until_offset": after[at]})
        return ranges, after

    def step(self):
        ranges, after = self.batch()
        if not ranges:
            self.moved.wait(0.1)
            return
        # Here the records of `ranges` would be worked on, and written where they belong.
        body = {"epoch": self.epoch, "batch_time": int(time.time() * 1000), "ranges": ranges,
                "key": f"{self.epoch}:" + ",".join(f"{r['topic']}/{r['partition']}@{r['from_offset']}" for r in ranges)}
        receipt = self.api.call("/batches", body)
        # The reply might have been lost: the same batch again is told the first receipt.
        again = self.api.call("/batches", body)
        assert (again["batch"], again["repeated"]) == (receipt["batch"], True), again
        self.next = after
        tell("committed", batch=receipt["batch"], at=self.where())

    def run(self):
        while True:
            try:
                if self.moved.is_set():
                    self.take_up()
                self.step()
            except OSError:  # the server is away: the same again, once it is back
                time.sleep(1)
            except Problem as problem:
                if problem.name != "fenced":
                    raise
                by = problem.body["raised_by"]
                tell("fenced", epoch=problem.body["epoch"], by=by["kind"])
                if by["kind"] == "started" and by["by"] != self.owner:
                    tell("stopped", owner=by["by"])
                    sys.exit(0)
                self.take_up()

    def take_up(self):
        """Goes on at the new positions, unless the group belongs to another process now."""
        owner = self.api.call("")["owner"]
        if owner != self.owner:
            tell("stopped", owner=owner)
            sys.exit(0)
        self.start("moved")


if __name__ == "__main__":
    url, group, owner, *topics = sys.argv[1:]
    Consumer(url, group, owner, topics).run()
