"""Lines between a driver and workers, here both in one process."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from multiprocessing import get_all_start_methods
from types import SimpleNamespace

import pytest

from privfit.records import lines
from privfit.records.lines import Lines, Place, listen

HOST = "127.0.0.1"
SOME = ["", "a", "x" * 5_000_000]  # the last does not fit into what a system keeps of a line


def upper(message):
    return bytes(message).upper()


def opened(**answers):
    """Lines to workers with these names, and what each of them answers with."""
    made = Lines()
    made.open({name: (HOST, listen(name, HOST, answer)) for name, answer in answers.items()})
    return closing(made)


def patient():
    return True


def asked(made, watch=patient, **messages):
    answers = made.ask({name: text.encode() for name, text in messages.items()}, watch)
    return answers if answers is None else [answer.decode() for answer in answers]


def gone(name, within=60):
    """Whether the thread that served this line has ended."""
    deadline = time.monotonic() + within
    while any(thread.name == name for thread in threading.enumerate()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("text", SOME, ids=len)
def test_messages_and_answers_of_all_sizes_arrive(text):
    with opened(a=upper, b=bytes) as made:
        for _ in range(3):
            assert asked(made, a=text, b=text + "b") == [text.upper(), text + "b"]
        assert asked(made, b=text) == [text]
        assert len(made) == 2
    assert gone("a")
    assert gone("b")


def test_answers_of_several_callers_are_not_mixed_up():
    with opened(a=upper) as made, ThreadPoolExecutor(4) as pool:
        texts = [f"t{i}" for i in range(200)]
        found = list(pool.map(lambda text: asked(made, a=text), texts))
    assert found == [[text.upper()] for text in texts]


def test_a_line_takes_one_caller_who_knows_the_secret():
    one = listen("one", HOST, upper)
    with socket.create_connection((HOST, one.port)) as line:
        line.sendall(one.secret)
        assert line.recv(99) == one.reply != one.secret
        with pytest.raises(ConnectionError):
            socket.create_connection((HOST, one.port))
    two = listen("two", HOST, upper)
    with closing(Lines()) as made:
        made.open({"two": (HOST, two._replace(secret=two.secret[::-1]))})
        assert len(made) == 0
    assert gone("one")
    assert gone("two")


@pytest.mark.parametrize("reply", ["another's", "the caller's own secret"])
def test_the_driver_asks_no_program_that_took_over_a_port(reply):
    """It would load what that program answers."""
    heard = []

    def serve():
        line, _ = server.accept()
        with line, suppress(ConnectionError):
            secret = line.recv(99)
            line.sendall(secret if reply == "the caller's own secret" else b"SSH-2.0-" * 9)
            heard.append(line.recv(99))

    with socket.create_server((HOST, 0)) as server, closing(Lines()) as made:
        other = threading.Thread(target=serve)
        other.start()
        place = Place(server.getsockname()[1], b"s" * 32, b"r" * 32)
        made.open({"a": (HOST, place)})
        assert len(made) == 0
        assert asked(made, a="a") is None
        other.join(60)
    assert not any(heard)


def test_secrets_are_not_shown():
    assert repr(Place(5, b"secret", b"reply")) == "<port 5>"


def test_a_caller_who_does_not_come_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(lines, "OPENED", 0.01)
    place = listen("nobody", HOST, upper)
    assert gone("nobody")
    with pytest.raises(ConnectionError):
        socket.create_connection((HOST, place.port))


def test_a_caller_who_sends_byte_by_byte_is_not_waited_for_longer(monkeypatch):
    """Each byte comes in time, but all of them do not."""
    clock, heard = [100.0], []

    class Slow:
        timeout = lines.OPENED

        def settimeout(self, seconds):
            self.timeout = seconds

        def recv_into(self, left):
            if self.timeout < 3:
                raise TimeoutError
            clock[0] += 3
            heard.append(1)
            left[:1] = b"s"
            return 1

    monkeypatch.setattr(lines, "time", SimpleNamespace(monotonic=lambda: clock[0]), raising=False)
    with pytest.raises(TimeoutError):
        lines._expect(Slow(), b"s" * 32)
    assert len(heard) == 3


def test_another_machines_address_has_no_line():
    assert listen("a", "203.0.113.7", upper) is None  # of no machine: RFC 5737


def test_lines_are_opened_to_all_workers_or_to_none():
    there = listen("there", HOST, upper)
    with socket.create_server((HOST, 0)) as silent:
        free = silent.getsockname()[1]
    with closing(Lines()) as made:
        made.open({"there": (HOST, there), "away": (HOST, Place(free, b"secret", b"reply"))})
        assert len(made) == 0
        assert asked(made, there="a") is None
    assert gone("there")


def test_an_interrupt_leaves_no_line_half_open(monkeypatch):
    def interrupted(*arguments):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return received(*arguments)

    received = lines._received
    made, places = Lines(), {"a": (HOST, listen("a", HOST, upper))}
    monkeypatch.setattr(lines, "_received", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.open(places)
    assert len(made) == 0
    assert gone("a")


def test_lines_are_closed_when_one_breaks():
    def failing(message):
        raise ValueError("not a word of this leaves the thread")

    with opened(a=upper, b=failing) as made:
        assert asked(made, a="a") == ["A"]
        assert asked(made, a="a", b="b") is None
        assert len(made) == 0
        assert asked(made, a="a") is None
    assert gone("a")


def test_a_question_ends_when_a_worker_has_left(monkeypatch):
    monkeypatch.setattr(lines, "PATIENCE", 0.01)
    silence, looks = threading.Event(), count(1)

    def answer(message):
        silence.wait(60)
        return upper(message)

    with opened(a=answer) as made:
        assert asked(made, lambda: next(looks) < 3, a="a") is None
        assert next(looks) == 4
        assert len(made) == 0
        silence.set()
    assert gone("a")


@pytest.mark.parametrize("text", SOME[1:], ids=len)
def test_a_late_answer_is_not_taken_for_the_next(text, monkeypatch):
    """Not even after an interrupt."""
    monkeypatch.setattr(lines, "PATIENCE", 0.01)
    silence = threading.Event()

    def answer(message):
        silence.wait(60)
        return upper(message)

    def interrupted():
        raise KeyboardInterrupt

    with opened(a=answer) as made:
        with pytest.raises(KeyboardInterrupt):
            asked(made, interrupted, a=text)
        silence.set()
        assert asked(made, a="next") is None
    assert gone("a")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name these otherwise")
@pytest.mark.parametrize("silent", [6, lines.SILENT])
def test_a_line_notices_a_host_that_is_gone(silent, monkeypatch):
    """Both ends ask the other one, as soon as it was silent for a third of the time."""
    monkeypatch.setattr(lines, "SILENT", silent)
    tuned, ends = lines._tuned, []

    def noted(line):
        ends.append(tuned(line))
        return line

    monkeypatch.setattr(lines, "_tuned", noted)
    with opened(a=upper):
        assert len(ends) == 2
        for line in ends:
            assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            kept = [line.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")]  # fmt: skip
            assert kept == [silent // 3, silent // 6, 4]
            assert silent // 3 + 4 * (silent // 6) == silent
    assert gone("a")


def test_an_answer_waits_for_those_before_it(monkeypatch):
    """However much it is, and for longer than a host may be silent."""
    monkeypatch.setattr(lines, "SILENT", 6)  # the least of which the system takes every part

    def late(message):
        gone("b", within=8)  # the line of b should not end meanwhile
        return upper(message)

    with opened(a=late, b=lambda _: bytes(30_000_000)) as made:
        [first, second] = made.ask({"a": b"a", "b": b"b"}, patient)
        assert (first, len(second)) == (b"A", 30_000_000)
    assert gone("b")


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_of_the_driver_has_no_lines(monkeypatch):
    """Or one of the two would read what the other asked for, and a line would not end with it."""
    heard, leave, go = [], *os.pipe()

    def answer(message):
        heard.append(bytes(message))
        return upper(message)

    with opened(a=answer) as made:
        child = os.fork()
        if not child:
            os.close(go)
            none = made.ask({"a": b"child"}, lambda: False) is None
            os.read(leave, 1)
            made.close()
            os._exit(0 if none else 1)
        assert asked(made, a="parent") == ["PARENT"]
    assert gone("a")
    os.close(go)
    assert os.waitpid(child, 0)[1] == 0
    os.close(leave)
    assert heard == [b"parent"]


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_that_ends_leaves_lines_open():
    with opened(a=upper) as made:
        child = os.fork()
        if not child:
            made.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert asked(made, a="a") == ["A"]
