"""A runtime's measurement from its files: the ratio to native threads is found again, printed and reported."""

from __future__ import annotations

import html
import json
import os
import re

import command_line
from of_runtimes import pair

from crosswind.measurement import Measurement, beside_file
from crosswind.report import report


def fitted(*arguments):
    done = command_line.crosswind("fit", *map(str, arguments), env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return done.stdout


def saved(tmp_path):
    runtime, native = pair(send=0.0002)
    path = tmp_path / "java.parquet"
    runtime.save(path)
    native.save(beside_file(path))
    return path


def test_what_lies_beside_is_loaded_with_it(tmp_path):
    path = saved(tmp_path)
    found = Measurement.load(path)
    assert found.beside is not None
    assert found.beside.beside is None
    beside_file(path).unlink()
    assert Measurement.load(path).beside is None


def test_fit_says_what_native_threads_pay(tmp_path):
    path = saved(tmp_path)
    text = fitted(path)
    assert re.search(r"sending through java \(io=stream\) costs [12]\.\d+ \(.*\) times what native costs", text)
    document = json.loads(fitted(path, "--json"))
    [receive, send] = document["runtime"]["beside"]
    assert receive["low"] < 1.0 < receive["high"]
    assert send["low"] < 2.0 < send["high"]


def test_the_report_has_rates_causes_and_the_ratio(tmp_path):
    page = report([saved(tmp_path)], tmp_path / "report.html").read_text()
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.split("</style>")[1])))
    assert "java 25.0.2 io=stream" in text
    assert "times what native costs" in text
    assert "CPU time at the highest rate" in text
    assert re.search(r"JIT [\d.]+ %", text)
