"""The text of a budget file: a JSON object whose entries, journals and releases have a line each.

A process that has read a file once reads only the lines that changed since: it keeps what each line
meant, and how it would write it. So a change to a file of thousands of entries costs little more
than reading and writing its bytes. A file in another layout, which an earlier version or an editor
wrote, is read as any JSON is. A field given twice is refused either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple, TypeAlias, TypeVar, cast

from privfit.base.errors import DeclarationError, FileError
from privfit.base.json import parse, write
from privfit.privacy.budgets import Budget
from privfit.privacy.charges import UNKNOWN, Charge, charge_of, relations_of
from privfit.privacy.fields import NAMES, ChargeFields, JournalFields, LedgerFields, ReleaseFields
from privfit.privacy.grants import NOT_OURS, Release, fields_of, release_of, written_fields
from privfit.privacy.ledger import FILES
from privfit.privacy.neighbours import Neighbours, check_rows, relation_of
from privfit.privacy.reservations import check_renewal

__all__ = ["Book", "BudgetText", "Made", "Progress"]

LISTS = ("entries", "journals", "releases")
MARGIN = "    "


class Made(NamedTuple):
    """A release, and the run and grant that made it; in files of earlier versions run is ''."""

    release: Release
    run: str = ""
    part: int = 0


class Progress(NamedTuple):
    """How far the journal of a run has got: its lines, the sum over them, and the last line."""

    run: str
    lines: int
    sum: str
    last: str = ""


@dataclass
class Book:
    """What a budget file holds."""

    identity: str
    budget: Budget
    max_rows: int = 1
    renewal: str | None = None
    neighbours: Neighbours | None = None
    charges: list[Charge] = field(default_factory=list)
    journals: list[Progress] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)


T = TypeVar("T")
Lines: TypeAlias = dict[int, tuple[T, str]]  # by the id of an object: the object and its line


class BudgetText:
    """Reads and writes a budget file, and remembers its lines."""

    def __init__(self) -> None:
        self._charges: Lines[Charge] = {}
        self._journals: Lines[Progress] = {}
        self._made: Lines[Made] = {}
        self._neighbours: Neighbours | None = None  # for whom charges were written

    def read(self, content: bytes) -> Book:
        """What a file holds.

        Parameters
        ----------
        content : bytes
            Its bytes.

        Returns
        -------
        Book
            The budget, and what was reserved and released.

        Raises
        ------
        PrivfitError
            If it is no budget file; the message says why.
        """
        try:
            found = _in_lines(content.decode())
            book = _book_of(content) if found is None else self._book_of(*found)
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError):
            raise DeclarationError(NOT_OURS) from None
        _check_entries(book)
        return book

    def _book_of(self, head: LedgerFields, lists: Sequence[list[str]]) -> Book:
        """The same for a file in the layout of `write`."""
        book = _head_of(head)
        book.charges, self._charges = _read_rows(lists[0], self._charges, _charge_in)
        book.journals, self._journals = _read_rows(lists[1], self._journals, _progress_in)
        book.made, self._made = _read_rows(lists[2], self._made, _made_in)
        self._neighbours = book.neighbours
        return book

    def write(self, book: Book) -> bytes:
        """The bytes of a file that holds this.

        Parameters
        ----------
        book : Book
            What it holds.

        Returns
        -------
        bytes
            JSON, as UTF-8.
        """
        if book.neighbours != self._neighbours:
            self._charges, self._neighbours = {}, book.neighbours
        promise = replace(book.budget, adjacency=relation_of(book.neighbours))
        head = {"privfit": FILES, "id": book.identity, **asdict(promise),
                "max_rows": book.max_rows, "renewal": book.renewal}  # fmt: skip

        def charge_fields(charge: Charge) -> ChargeFields:
            return charge.fields(book.neighbours)

        lists = (
            _written_rows(book.charges, self._charges, charge_fields),
            _written_rows(book.journals, self._journals, _progress_fields),
            _written_rows(book.made, self._made, _made_fields),
        )
        parts = [f"  {write(name)}: {write(value)}" for name, value in head.items()]
        parts += [_list_text(*both) for both in zip(LISTS, lists, strict=True)]
        return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _list_text(name: str, rows: list[str]) -> str:
    shown = MARGIN + f",\n{MARGIN}".join(rows) + "\n" if rows else ""
    return f'  "{name}": [\n{shown}  ]'


def _read_rows(
    rows: list[str], known: Lines[T], read: Callable[[dict[str, object]], T]
) -> tuple[list[T], Lines[T]]:
    """What rows mean, and their lines; only those that are not known are parsed."""
    meanings = {line: meant for meant, line in known.values()}
    for row in rows:
        if row not in meanings:
            meanings[row] = read(parse(row, finite=False, public=NAMES))
    found = [meanings[row] for row in rows]
    return found, {id(meant): (meant, row) for meant, row in zip(found, rows, strict=True)}


def _written_rows(items: list[T], known: Lines[T], fields: Callable[[T], object]) -> list[str]:
    """The lines of these items; those that are not known are written, and known from now on."""
    if len(known) > 2 * len(items):  # most of it is of items that were replaced
        kept = set(map(id, items))
        for gone in known.keys() - kept:
            del known[gone]
    for one in items:
        if id(one) not in known:
            known[id(one)] = one, write(fields(one))
    return [known[id(one)][1] for one in items]


def _in_lines(text: str) -> tuple[LedgerFields, list[list[str]]] | None:
    """The head of a file and the rows of its lists; None if it is not as `write` lays it out."""
    lines = text.split("\n")
    lists: list[list[str]] = []
    try:
        at = start = lines.index(f'  "{LISTS[0]}": [')
        for name in LISTS:
            end = lines.index("  ]" if name == LISTS[-1] else "  ],", at)
            rows = lines[at + 1 : end]
            ends = ["},"] * (len(rows) - 1) + ["}"] * bool(rows)
            fits = all(row.startswith(MARGIN + "{") and row.endswith(last)
                       for row, last in zip(rows, ends, strict=True))  # fmt: skip
            if lines[at] != f'  "{name}": [' or not fits:
                return None
            lists.append([row[len(MARGIN) :].removesuffix(",") for row in rows])
            at = end + 1
    except ValueError:
        return None
    if lines[0] != "{" or lines[at:] != ["}", ""] or not lines[start - 1].endswith(","):
        return None
    head = fields_of("{" + "\n".join(lines[1:start])[:-1] + "}", *range(1, FILES + 1))
    if head["privfit"] != FILES:
        return None
    for name in LISTS:
        if name in head:
            raise FileError(f"the field {name!r} is given twice")
    return cast("LedgerFields", head), lists


# ------------------------------------------------------------------------------------------ fields


def _book_of(content: bytes) -> Book:
    """What a file of any version and layout holds."""
    fields = cast("LedgerFields", fields_of(content, *range(1, FILES + 1)))
    entries, made = fields["entries"], fields.get("releases", [])
    book = _head_of(fields)
    if fields["privfit"] == 1:
        book.charges = list(map(charge_of, entries, relations_of(entries, made)))
    else:
        book.charges = [_charge_in(cast("dict[str, object]", one)) for one in entries]
    book.journals = [_progress_in(dict(one)) for one in fields.get("journals", [])]
    book.made = [_made_in(dict(one)) for one in made]
    return book


def _head_of(fields: LedgerFields) -> Book:
    rows = check_rows(fields.get("max_rows", 1), "max_rows")
    relation = fields.get("adjacency") if fields["privfit"] > 1 else None
    neighbours = None if relation is None else Neighbours(Neighbours.of(relation).relation, rows)
    renewal = fields.get("renewal")
    check_renewal(renewal)
    budget = Budget(fields["epsilon"], fields["delta"])
    return Book(fields.get("id", ""), budget, rows, renewal, neighbours)


def _charge_in(fields: dict[str, object]) -> Charge:
    entry = cast("ChargeFields", fields)
    return charge_of(entry, entry.get("adjacency", UNKNOWN))


def _made_in(fields: dict[str, object]) -> Made:
    run, part = fields.pop("run", ""), fields.pop("part", 0)
    if not isinstance(run, str) or type(part) is not int:  # False and 0.0 would be part 0
        raise KeyError
    return Made(release_of(cast("ReleaseFields", fields)), run, part)


def _made_fields(made: Made) -> dict[str, object]:
    whose = {"run": made.run, "part": made.part} if made.run else {}
    return {**whose, **written_fields(made.release)}


def _progress_in(fields: dict[str, object]) -> Progress:
    found = Progress(**fields)  # type: ignore[arg-type]  # a TypeError for other fields
    if type(found.lines) is not int or not all(isinstance(text, str) for text in found[2:]):
        raise KeyError
    return found


def _progress_fields(progress: Progress) -> JournalFields:
    return cast("JournalFields", progress._asdict())


def _check_entries(book: Book) -> None:
    """Refuse a release or a journal that no entry paid for, and entries that say the same.

    An entry of an earlier version names no run, so that its release may be that of any of these.
    """
    whose = [(one.reservation.run, one.reservation.part) if one.reservation else ("", 0)
             for one in book.charges]  # fmt: skip
    entries = dict(zip(whose, book.charges, strict=True))
    if len(entries.keys() - {("", 0)}) < len(whose) - whose.count(("", 0)):
        raise DeclarationError("two of its entries are of the same part of the same run")
    if book.renewal and ("", 0) in entries:
        raise DeclarationError("it renews, but one of its entries has no time")
    _check_made(book, entries)
    runs, journals = {run for run, _ in entries}, [one.run for one in book.journals]
    if not runs.issuperset(journals):
        raise DeclarationError("the journal of a run has no entry")
    if len({*journals}) < len(journals):
        raise DeclarationError("two of its journals are of the same run")


def _check_made(book: Book, entries: dict[tuple[str, int], Charge]) -> None:
    """Refuse releases that their entries did not pay for; one may be there twice.

    One entry may pay for several, as where a command fits and then scores held-out records. Each
    part of a run with a journal makes one.
    """
    seen: dict[tuple[str, int], Made] = {}
    journals = {one.run for one in book.journals}
    for made in book.made:
        whose, cost = (made.run, made.part), made.release
        if whose not in entries:
            raise DeclarationError(f"the release of {cost.name!r} has no entry")
        if not made.run:
            continue
        entry = entries[whose]
        if cost.epsilon > entry.budget.epsilon or cost.delta > entry.budget.delta:
            raise DeclarationError(f"the release of {cost.name!r} has an entry that costs less")
        if (entry.adjacency or relation_of(book.neighbours)) not in (None, UNKNOWN, cost.adjacency):
            raise DeclarationError(f"the release of {cost.name!r} has an entry of another relation")
        first = seen.setdefault(whose, made) if made.run in journals else made
        if first is not made and _made_fields(first) != _made_fields(made):
            raise DeclarationError("two of its releases are of the same part of the same run")
