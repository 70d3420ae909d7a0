"""Records on the workers of a Dask cluster: candidates go out, sums of integers come back.

Each partition is loaded and packed by one worker, as a task, and stays in that worker's process,
outside the memory that Dask manages and may move. A question is not a task: it takes a tenth of the
time that a task takes on its way through a scheduler. It goes to FAN_IN workers, each of which asks
as many others while it answers for its own partitions, and so on down a tree; sums come back the
same way. Only candidates and sums of integers cross the network; the driver never sees a record.

The driver asks over `lines` of its own, if it can open them. They are in plain text, so it opens
none where Dask's connections are not. Otherwise it asks over Dask's connections to workers, and
where it cannot reach workers at all, the scheduler passes a question on to the first one.

**Failures.** A question contains everything that is needed to answer it (`rows`), so asking again
is free and exact. Every sum carries the number of records that it covers. If a worker is lost, the
sum covers too few records and is not used; the lost partitions are packed again, from the
collection's own graph, and the whole question is asked again. Noise is drawn by the driver, once.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, reduce
from heapq import heapify, heapreplace
from typing import Any, TypeAlias

import numpy as np

from privfit.base import blas, extras
from privfit.base.errors import (
    ClusterError,
    DeclarationError,
    InputError,
    InputTypeError,
    MissingExtraError,
)
from privfit.base.typing import Integers
from privfit.domains.frames import chosen, column_names, records_of
from privfit.records.lines import PATIENCE, Lines, Place, listen
from privfit.records.rows import Rows
from privfit.records.sums import Make, Question, R, Sums, join_small, share_threads

Asked: TypeAlias = Question[Any, Integers]
Homes: TypeAlias = "list[tuple[str, list[int]]]"  # workers and the partitions that they answer for

FAN_IN = 8  # workers that a worker asks: messages of a level are few, and so are levels
REACH = 2.0  # seconds for a first connection to a worker; else the scheduler passes questions on
MOST_ROUNDS = 20  # of one question: a worker that runs out of memory will do so again
PLAIN = "tcp://"  # addresses of workers whose connections are not encrypted
AWAKE = 30.0  # seconds between two tasks, without which a scheduler may close for want of use
WAIT = 60.0  # seconds to wait for a first worker, or for another if all are gone


# --------------------------------------------------------------------------------- on the workers


@dataclass(frozen=True, repr=False)
class _Sum:
    """A sum of answers, the number of records that it covers, and why it does not cover others."""

    total: Integers | None = None
    n_records: int = 0
    failure: Exception | None = None

    def __add__(self, other: _Sum) -> _Sum:
        if self.total is None or other.total is None:
            total = other.total if self.total is None else self.total
        else:
            total = self.total + other.total
        return _Sum(total, self.n_records + other.n_records, self.failure or other.failure)


def _add(sums: Any) -> _Sum:
    return reduce(_Sum.__add__, sums, _Sum())


def _portable(error: Exception) -> Exception:
    """The error, or its name if it cannot be pickled: else it would look like a lost worker."""
    from distributed.protocol.pickle import dumps, loads

    try:
        sent: Exception = loads(dumps(error))
    except Exception:
        sent = RuntimeError(f"a part could not answer ({type(error).__name__})")
    return sent


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads for questions, kept alive: a question may take less time than starting a thread."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="privfit")


@dataclass
class _Share:
    """A fit's tables on this worker; one question at a time, since tables store margins."""

    tables: dict[tuple[int, ...], Rows] = field(default_factory=dict)  # by numbers of partitions
    lock: threading.Lock = field(default_factory=threading.Lock)
    joined: bool = False

    def numbers(self) -> set[int]:
        """The partitions that are held."""
        return {index for numbers in list(self.tables) for index in numbers}

    def hold(self, index: int, table: Rows) -> None:
        """Keep a table, unless this partition is held already, in one with others."""
        with self.lock:
            if (index,) in self.tables or index not in self.numbers():
                self.tables[index,], self.joined = table, False

    def answer(self, question: Asked, indices: list[int], n_threads: int) -> _Sum:
        """The sum of the answers of these partitions, as far as they are held."""
        with self.lock, blas.at_most(n_threads):
            try:
                found = self._of(indices)
                at_once = share_threads(found, n_threads)
                each: Any = _pool(n_threads).map if at_once > 1 else map
                totals = each(question, found)
                return _add(map(_Sum, totals, [table.n_records for table in found]))
            except Exception as error:  # returned: Dask logs what is raised, and its arguments
                return _Sum(failure=_portable(error))

    def _of(self, indices: list[int]) -> list[Rows]:
        """The tables of these partitions; small ones are joined, and any others forgotten."""
        mine = set(indices)
        self.tables = {
            numbers: table for numbers, table in self.tables.items() if mine >= {*numbers}
        }
        if not self.joined:
            self.tables, self.joined = join_small(self.tables), True
        return list(self.tables.values())


_HELD: defaultdict[tuple[str, str], _Share] = defaultdict(_Share)  # by fit and worker


@dataclass(frozen=True)
class _Card:
    """What the driver learns about a packed partition: its size and width, or why it is refused."""

    n_records: int = 0
    n_features: int = 0
    refusal: Exception | None = None
    names: tuple[Any, ...] = ()  # of its columns, if they have any


@dataclass(frozen=True)
class _Label:
    """The name of the column of labels, in the same partition as the records."""

    name: str


@dataclass(frozen=True, repr=False)
class _Recipe:
    """The graph of one partition. The worker that packs it also loads it, so no records travel."""

    key: Any
    graph: dict[Any, Any]

    def load(self) -> Any:
        from dask.local import get_sync

        return get_sync(self.graph, self.key)


def _loaded(partition: Any) -> Any:
    return partition.load() if isinstance(partition, _Recipe) else partition


def _pack(fit: str, index: int, X: Any, y: Any, make: Make[Rows], order: tuple[Any, ...]) -> _Card:
    """Pack a partition and keep it here. A refusal is returned: Dask logs what is raised."""
    from distributed import get_worker

    X, y = _loaded(X), _loaded(y)
    names = tuple(column_names(X) or ())
    if records_of(X) == 0:
        return _Card(names=names)
    try:
        X = _in_order(X, names, order)
        table = make(*(_apart(X, y.name) if isinstance(y, _Label) else (X, y)))
    except Exception as error:
        return _Card(refusal=_portable(error.with_traceback(None)), names=names)
    _HELD[fit, get_worker().address].hold(index, table)
    return _Card(table.n_records, table.n_features, names=order or names)


def _in_order(X: Any, names: tuple[Any, ...], order: tuple[Any, ...]) -> Any:
    """A partition with its columns in the order of the first one: names count, not places."""
    if names == order or not order:
        return X
    if len(names) != len(order) or {*names} != {*order}:
        raise InputError(
            "partitions must have the same columns; select those of a record in each of them"
        )
    return chosen(X, order)


def _apart(X: Any, label: str) -> tuple[Any, Any]:
    """The columns of a record, and their labels."""
    names = column_names(X) or []
    if names.count(label) != 1:
        raise InputError(
            f"y ({label!r}) must name one column of X, which contains the labels; pass its name"
        )
    return chosen(X, [name for name in names if name != label]), X[label]


async def _ask(fit: str, question: Asked, homes: Homes, dask_worker: Any = None) -> _Sum:
    """The sum over this worker, which is the first of `homes`, and over the others below it."""
    (_, indices), *below = homes
    here = _HELD[fit, dask_worker.address].answer
    mine, others = await asyncio.gather(
        asyncio.to_thread(here, question, indices, dask_worker.state.nthreads),
        _ask_others(fit, question, below, dask_worker.rpc),
    )
    return _add([mine, others])


async def _ask_others(fit: str, question: Asked, homes: Homes, rpc: Any) -> _Sum:
    """The sum over these workers, FAN_IN of which are asked for themselves and the others."""
    asked = [_pass_on(fit, question, branch, rpc) for branch in _branches(homes)]
    return _add(await asyncio.gather(*asked))


def _branches(homes: Homes) -> list[Homes]:
    return [homes[i::FAN_IN] for i in range(min(FAN_IN, len(homes)))]


async def _pass_on(fit: str, question: Asked, homes: Homes, rpc: Any) -> _Sum:
    """The answer of the first of these workers, by the same message as that of `Client.run`."""
    from distributed.protocol.pickle import dumps

    try:
        reply = await rpc(homes[0][0]).run(function=dumps(_ask), args=dumps((fit, question, homes)))
    except OSError:  # it is gone, and what it held is missing from the sum
        return _Sum()
    found: _Sum = reply.get("result", _Sum())
    return found


def _listen(fit: str, dask_worker: Any = None) -> Place | None:
    """Open a line to this worker."""
    from distributed.protocol.pickle import dumps, loads

    def answer(message: bytearray) -> bytes:
        question, homes = loads(message)
        found: bytes = dumps(_answered(fit, question, homes, dask_worker))
        return found

    return listen(fit, dask_worker.ip, answer)


def _answered(fit: str, question: Asked, homes: Homes, worker: Any) -> _Sum:
    """The same as `_ask` in a thread of this worker; its event loop asks those below, if any."""
    (_, indices), *below = homes
    asked = [_ask_others(fit, question, below, worker.rpc)] if below else []
    others = [asyncio.run_coroutine_threadsafe(one, worker.loop.asyncio_loop) for one in asked]
    mine = _HELD[fit, worker.address].answer(question, indices, worker.state.nthreads)
    return _add([mine, *(one.result() for one in others)])


def _numbers(fit: str, dask_worker: Any = None) -> set[int]:
    return _HELD[fit, dask_worker.address].numbers()


def _drop(fit: str) -> None:
    for key in [key for key in list(_HELD) if key[0] == fit]:
        _HELD.pop(key, None)


# ---------------------------------------------------------------------------------- on the driver


def place_on_workers(X: Any, y: Any, make: Make[R]) -> Sums[R]:
    """Pack the partitions of a Dask collection, each on one worker."""
    client = _client()
    return _Workers(client, _partitions(X, y, client), make)


def _client() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtraError(
            f"records on a cluster need dask.distributed; run {extras.install('dask')}"
        ) from None
    try:
        client = distributed.get_client()
    except ValueError:
        raise DeclarationError(
            "Dask collections need a client; start one with "
            "dask.distributed.Client(address), or Client() for this machine alone"
        ) from None
    if client.asynchronous:
        raise DeclarationError(
            "fit waits for answers, but this client is asynchronous; call fit outside the event "
            "loop, with a client that was started without asynchronous=True"
        )
    return client


def _partitions(X: Any, y: Any, client: Any) -> list[tuple[Any, Any]]:
    """(records, labels) of each partition: a recipe, or a future if a worker has it already."""
    if isinstance(y, str):
        _check_label(X, y)
        return [(part, _Label(y)) for part in _references(X, client)]
    rows = _references(X, client)
    labels = [None] * len(rows) if y is None else _references(y, client)
    if len(rows) != len(labels):
        raise InputError(
            f"y ({len(labels)} partitions) must be partitioned like X ({len(rows)} partitions); "
            "rechunk or repartition one of them, or pass the name of a column of X"
        )
    return list(zip(rows, labels, strict=True))


def _check_label(X: Any, y: str) -> None:
    """Refuse the name of a column that X does not have, as far as this is known here."""
    if not isinstance(X, list) and y not in (column_names(X) or ()):
        raise InputError(
            f"y ({y!r}) must name a column of X, which contains the labels, or be a Dask "
            "collection; pass one of these"
        )


def _references(collection: Any, client: Any) -> list[Any]:
    from dask.optimization import cull
    from distributed import Future, futures_of

    if isinstance(collection, list) and all(isinstance(one, Future) for one in collection):
        return collection
    if futures_of(collection):
        return list(client.compute(partitions_of(collection)))
    found = []
    for partition in partitions_of(collection):
        graph, _ = cull(dict(partition.__dask_graph__()), [partition.key])
        found.append(_Recipe(partition.key, graph))
    return found


def partitions_of(collection: Any) -> list[Any]:
    """The partitions as delayed values; Dask would join some of them by the columns that it reads.

    Then records and labels of one table would be cut in different places.
    """
    if isinstance(collection, list):
        return collection
    if not hasattr(collection, "to_delayed"):
        raise InputTypeError(
            f"y ({type(collection).__name__}) must be partitioned like X; pass a Dask array, "
            "Series or list of delayed partitions"
        )
    if getattr(collection, "ndim", 0) == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})  # whole rows in each block
    return list(np.ravel(np.array(collection.to_delayed(optimize_graph=False), dtype=object)))


@contextmanager
def _scheduler_reached() -> Iterator[None]:
    """Say so if the scheduler is lost; Dask raises many kinds of errors then."""
    try:
        yield
    except (OSError, TimeoutError, asyncio.TimeoutError, CancelledError, RuntimeError) as error:
        if isinstance(error, ClusterError):
            raise
        raise ClusterError(
            f"the scheduler of the cluster does not answer ({type(error).__name__}); start a "
            "cluster, and fit again"
        ) from None


class _Workers(Sums[R]):
    """Tables held by the workers of a client."""

    def __init__(self, client: Any, partitions: list[tuple[Any, Any]], make: Make[R]) -> None:
        self._client, self._partitions, self._make = client, partitions, make
        self._fit = f"privfit-{uuid.uuid4().hex}"
        self._home: dict[int, str] = {}  # the worker of each partition
        self._asked: Homes = []  # the same by worker, of partitions with records
        self._cards: dict[int, _Card] = {}
        self._used: set[str] = set()  # workers that may hold tables of this fit
        self._order: tuple[Any, ...] | None = None  # the columns of the first partition
        self._last_task = time.monotonic()
        self._reaches: bool | None = None  # whether questions go to workers directly
        self._lines = Lines()
        weakref.finalize(self, _drop_everywhere, client, self._fit, self._used)
        weakref.finalize(self, self._lines.close)
        self._settle()
        filled = [card for card in self._cards.values() if card.n_records]
        self._count([card.n_records for card in filled], [card.n_features for card in filled])
        self.column_names = self._order or ()

    def _sum(self, question: Question[R, Integers]) -> Integers:
        for _ in range(MOST_ROUNDS):
            found = self._round(question)
            if found.failure is not None:
                raise found.failure
            if found.n_records == self.n_records:
                assert found.total is not None
                return np.asarray(found.total)
            self._see_who_holds_what()
            self._settle()
        raise ClusterError(
            f"workers were lost in {MOST_ROUNDS} attempts at one question; give them enough "
            f"memory for their partitions, and fit again"
        )

    def _try_one(self, question: Question[R, Integers]) -> None:
        failure = self._round(question, workers=1).failure
        if failure is not None:
            raise failure

    # ---------------------------------------------------------------------------- where tables are

    def _settle(self) -> None:
        """Make sure that every partition is held by a worker that is alive."""
        while True:
            workers = self._workers()
            homeless = [i for i in range(len(self._partitions)) if self._home.get(i) not in workers]
            if not homeless:
                return
            self._pack(homeless, workers)

    def _workers(self) -> dict[str, int]:
        """Addresses and numbers of threads of the workers that are alive."""
        with _scheduler_reached():
            workers: dict[str, int] = self._client.nthreads()
        if not workers:
            try:
                self._client.wait_for_workers(1, timeout=WAIT)
            except Exception:
                raise ClusterError(
                    f"the cluster has had no worker for {WAIT:.0f} seconds; start some and fit "
                    "again"
                ) from None
            with _scheduler_reached():
                workers = self._client.nthreads()
        return workers

    def _pack(self, indices: list[int], workers: dict[str, int]) -> None:
        """Have these partitions packed: where they are already, or shared out by threads."""
        jobs = self._shared_out(indices, workers)
        self._used.update(jobs)
        asked = {
            i: self._at(
                address, _pack, self._fit, i, *self._partitions[i], self._make, self._order or ()
            )
            for address, mine in jobs.items()
            for i in mine
        }
        if not self._finished(list(asked.values()), set(jobs)):
            return
        cards = dict(zip(asked, self._client.gather(list(asked.values())), strict=True))
        for future in asked.values():  # or Dask would pack anew, by itself, what a worker loses
            future.release()
        if self._order is None:
            cards = self._in_first_order(cards)
        for card in cards.values():
            if card.refusal is not None:
                raise card.refusal
        if any(card != self._cards.get(i, card) for i, card in cards.items()):
            raise ClusterError(
                "a partition has changed since it was first read; fit to a collection that "
                "returns the same records whenever it is read, or persist it"
            )
        self._cards.update(cards)
        self._home.update(
            {i: address for address, mine in jobs.items() for i in mine if i in cards}
        )

    def _in_first_order(self, cards: dict[int, _Card]) -> dict[int, _Card]:
        """The cards of partitions with the columns of the first; others are packed again.

        The first may have no records: the order, which is released, must not tell whether it has.
        """
        filled = [i for i, card in sorted(cards.items()) if card.n_records or card.refusal]
        if not filled:
            return cards
        wanted = Counter(cards[filled[0]].names)
        self._order = next(
            card.names for _, card in sorted(cards.items()) if Counter(card.names) == wanted
        )
        other = {i for i in filled if self._order and cards[i].names != self._order}
        return {i: card for i, card in cards.items() if i not in other}

    def _shared_out(self, indices: list[int], workers: dict[str, int]) -> dict[str, list[int]]:
        """Which worker packs which partitions: the one that has it, or has the fewest a thread."""
        places = {index: self._lies_at(index, workers) for index in indices}
        load = Counter([*self._home.values(), *filter(None, places.values())])
        turns = [((load[one] + 1) / max(1, n), one, max(1, n)) for one, n in workers.items()]
        heapify(turns)
        jobs: dict[str, list[int]] = defaultdict(list)
        for index, place in places.items():
            if place is None:
                after, place, count = turns[0]
                heapreplace(turns, (after + 1 / count, place, count))
            jobs[place].append(index)
        return jobs

    def _lies_at(self, index: int, workers: dict[str, int]) -> str | None:
        """The worker that has the records of a persisted partition."""
        records = self._partitions[index][0]
        if isinstance(records, _Recipe):
            return None
        [places] = self._client.who_has([records]).values()
        return next((address for address in places if address in workers), None)

    def _at(self, address: str, task: Any, *arguments: Any) -> Any:
        """A future of the result, computed by this worker and no other."""
        return self._client.submit(
            task, *arguments, workers=[address], allow_other_workers=False, pure=False
        )

    # ---------------------------------------------------------------------------------- a question

    def _round(self, question: Asked, workers: int | None = None) -> _Sum:
        """Ask all (or some) workers and add up; the sum covers too few records if one was lost."""
        if not self._asked:
            by_worker: dict[str, list[int]] = defaultdict(list)
            for index, address in self._home.items():
                if self._cards[index].n_records:
                    by_worker[address].append(index)
            self._asked = list(by_worker.items())
            self._open_lines([address for address, _ in self._asked[:FAN_IN]])
        homes = self._asked[:workers]
        found = self._over_lines(question, homes) if self._lines else None
        return self._over_dask(question, homes) if found is None else found

    def _open_lines(self, addresses: list[str]) -> None:
        """Open lines to these workers if the driver reaches all of them, and to no others."""
        from distributed.comm import get_address_host

        places: dict[str, Place | None] = {}
        if all(one.startswith(PLAIN) for one in addresses) and self._is_in_reach(addresses[0]):
            places = self._run(addresses, _listen, self._fit)
        ready = {one: (get_address_host(one), place) for one, place in places.items() if place}
        self._lines.open(ready if len(ready) == len(addresses) else {})

    def _over_lines(self, question: Asked, homes: Homes) -> _Sum | None:
        """The sum of all answers over lines; None if one of these broke."""
        from distributed.protocol.pickle import dumps, loads

        self._show_life()
        messages = {branch[0][0]: dumps((question, branch)) for branch in _branches(homes)}
        answers = self._lines.ask(messages, self._all_are_there)
        return None if answers is None else _add(map(loads, answers))

    def _all_are_there(self) -> bool:
        """Whether no worker of this fit has left."""
        self._show_life()
        with _scheduler_reached():
            return {*self._home.values()} <= self._client.nthreads().keys()

    def _over_dask(self, question: Asked, homes: Homes) -> _Sum:
        """The sum over Dask's own connections."""
        first = homes[0][0]
        if not self._is_in_reach(first):
            return _add(self._run([first], _ask, self._fit, question, homes).values())
        with _scheduler_reached():
            rpc = self._client.rpc
            asked = self._client.sync(self._watched, _ask_others, self._fit, question, homes, rpc)
        return asked or _Sum()

    def _is_in_reach(self, address: str) -> bool:
        """Whether the driver can connect to workers itself, as to this one."""
        if self._reaches is None:
            self._reaches = bool(self._client.sync(_reaches, self._client.rpc, address))
        return self._reaches

    def _see_who_holds_what(self) -> None:
        """Forget the home of a partition that is gone, such as that of a worker that restarted."""
        there, self._asked = self._workers(), []
        self._home = {index: home for index, home in self._home.items() if home in there}
        held = self._run(sorted({*self._home.values()}), _numbers, self._fit)
        self._home = {index: home for index, home in self._home.items()
                      if index in held.get(home, ())}  # fmt: skip

    def _run(self, addresses: list[str], task: Any, *arguments: Any) -> dict[str, Any]:
        """The results of these workers, computed at once and outside Dask's tasks.

        Workers that do not answer are left out; none answers if a worker of this fit has left.
        """
        with _scheduler_reached():
            found = self._client.sync(self._watched, self._run_there, addresses, task, arguments)
        return found or {}

    async def _run_there(self, addresses: list[str], task: Any, arguments: Any) -> dict[str, Any]:
        """Within the client's event loop, where its methods have to be awaited."""
        return dict(await self._client.run(task, *arguments, workers=addresses, on_error="ignore"))

    async def _watched(self, ask: Any, *arguments: Any) -> Any:
        """What `ask` returns; None if a worker of this fit leaves meanwhile."""
        answers = asyncio.ensure_future(ask(*arguments))
        while True:
            self._show_life()
            done, _ = await asyncio.wait([answers], timeout=PATIENCE)
            if done:
                return answers.result()
            # Dask tries for long to connect to one that is gone.
            if not {*self._home.values()} <= (await self._client.nthreads()).keys():
                answers.cancel()
                return None

    def _show_life(self) -> None:
        """Submit a task now and then: the scheduler thinks a client without tasks is idle."""
        idle = time.monotonic() - self._last_task > AWAKE
        if idle and self._client.status == "running":
            self._last_task = time.monotonic()
            self._client.submit(int, pure=False)

    def _finished(self, futures: list[Any], addresses: set[str]) -> bool:
        """Wait for results; False if one of their workers left, so that they may never come."""
        from distributed import TimeoutError, wait
        from distributed.scheduler import KilledWorker

        while True:
            try:
                wait(futures, timeout=PATIENCE)
            except TimeoutError:
                if addresses <= self._client.nthreads().keys():
                    continue
                self._client.cancel(futures, force=True)
                return False
            broken = [future for future in futures if future.status != "finished"]
            if not broken:
                return True
            error = broken[0].exception() if broken[0].status == "error" else None
            if error is not None and not isinstance(error, KilledWorker):
                raise error
            return False


async def _reaches(rpc: Any, address: str) -> bool:
    """Whether a connection to a worker can be made from here; a pool keeps it for questions."""
    try:
        comm = await asyncio.wait_for(rpc.connect(address), REACH)
    except (OSError, TimeoutError, asyncio.TimeoutError):
        return False
    rpc.reuse(address, comm)
    return True


def _drop_everywhere(client: Any, fit: str, addresses: set[str]) -> None:
    """Let the workers forget a fit's tables; a worker that is gone has forgotten them."""
    if getattr(client, "status", "") != "running":
        return
    from distributed import fire_and_forget

    for address in addresses:  # without waiting: this may run wherever garbage is collected
        fire_and_forget(
            client.submit(_drop, fit, workers=[address], allow_other_workers=True, pure=False)
        )
