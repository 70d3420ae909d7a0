"""The logger `privfit`: what is spent, for whoever asks by ``LOGGER.setLevel``; by default nobody.

    INFO    reserve    a ledger was charged for a grant
    DEBUG   charge     a draw is covered by its grant
    DEBUG   release    the draw was made
    INFO    close      the grant was closed, and its release made

An event has the name, epsilon and delta of its grant, and charges and releases the mechanism with
its kind, size and count: facts that the `Release` will show, and that are public before the draw.
No event has a value, a number of records or a time of its own. **All events of a grant carry the
time when its run began**, before records were read, since how long that and a run take depends on
records, and logs are kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = ["LOGGER", "now", "run_since", "tell"]

LOGGER = logging.getLogger("privfit")
LOGGER.addHandler(logging.NullHandler())
if LOGGER.level == logging.NOTSET:  # a root that logs everything has not asked for budgets
    LOGGER.setLevel(logging.CRITICAL + 1)
LEVELS = {"reserve": logging.INFO, "close": logging.INFO}


def tell(event: str, since: float, facts_of: Callable[[], dict[str, str | float]]) -> None:
    """Log an event of a grant that was reserved at this time; no handler can make a run fail.

    The facts, for which is asked only if somebody listens, are `record.privfit`, for handlers that
    count.
    """
    level = LEVELS.get(event, logging.DEBUG)
    if not LOGGER.isEnabledFor(level):
        return
    facts = facts_of()
    shown = " ".join(f"{key}={value}" for key, value in facts.items())
    extra = {"privfit": {"event": event, **facts}}
    text = f"{event} {shown}"
    record = LOGGER.makeRecord(LOGGER.name, level, "", 0, text, (), None, "", extra)
    record.relativeCreated += 1000 * (since - record.created)
    record.created, record.msecs = since, 1000 * (since % 1)
    with suppress(Exception):
        LOGGER.handle(record)


_began: ContextVar[float | None] = ContextVar("began", default=None)


def now() -> float:
    """The time that what is written of a grant is to carry: when its run began."""
    return _began.get() or time.time()


@contextmanager
def run_since(began: float) -> Iterator[None]:
    """While this lasts, `now` is a time before records were read."""
    before = _began.set(began)
    try:
        yield
    finally:
        _began.reset(before)
