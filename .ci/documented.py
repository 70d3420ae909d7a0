"""Run every command that the documentation shows, from the root of a clone, with privfit installed.

python .ci/documented.py            # in a copy of the tree, since commands write files
python .ci/documented.py --list     # what would run, and why the rest does not

A command is a line of a block ```sh, or `python ...` within a sentence. It runs as it stands, with
the options of SHORT behind it. What cannot run here is named in NOT_RUN, with the reason; a command
that is in neither and takes long is noticed by its time limit.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 300  # seconds, far above what any of them takes

# By command, or by subject of the benches: options that make a run short.
SHORT = {
    "bench speed": "--quick --filter 'hinge|ROC|texts as objects|stream 2GB'",
    "bench accuracy": "--quick --filter 'roc|kmedian' --jobs 1",
    "bench columns": "--quick --filter 'spambase .* privfit'",
    "bench rules": "--quick --filter 'spambase, 500 rows / auto'",
    "bench papers": "--quick --filter 'stoddard_2014 / 3' --jobs 1",
    "bench peers": "--quick --filter 'spambase / auto'",
    "bench audit": "--quick --filter Medians",
    "bench coverage": "--quick --filter 'output / numbers 2'",
    "bench pictures": "--quick",
    "python tools/releases.py --compare tests/models/releases.json": "--filter mechanism",
    "python tools/streams.py": "--rows 100000",
    "python tools/streams.py --dask": "--rows 100000",
}

INSTALLS = "installs: every job of .ci/run does so, in environments of its own"
LINTS = "a linter: .ci/run ends with them"
ASV = "asv is in the extra bench, which CI does not install"
NOT_RUN = {
    "pip install .": INSTALLS,
    'pip install ".[test]"': INSTALLS,
    'pip install ".[cli,plot]"': INSTALLS,
    'pip install -e ".[test,lint,cli,plot]" "setuptools>=77"': INSTALLS,
    "git clone <this repository>": "names no repository",
    "cd privfit": "the root is where commands run",
    "python -m venv .venv": INSTALLS,
    ". .venv/bin/activate": INSTALLS,
    "python setup.py build_ext --inplace": "would hide the installed kernels, which are tried here",
    "python -m bench peers --setup": "downloads packages",
    "asv machine --yes": ASV,
    "asv run --python=same --quick": ASV,
    "asv run --python=same --set-commit-hash $(git rev-parse HEAD)": ASV,
    "asv compare HEAD~1 HEAD": ASV,
    "asv continuous HEAD~1 HEAD": ASV,
    "python tools/nogil.py": LINTS,
    "python tools/releases.py --out tests/models/releases.json": "the record stays as it is",
    "ruff check .": LINTS,
    "ruff format .": LINTS,
    "mypy": LINTS,
    "cython-lint privfit": LINTS,
    "lint-imports": LINTS,
    "python tools/docstrings.py": LINTS,
    "pytest": "tests: .ci/run has run them by now",
    'pytest -m "not nightly"': "tests: .ci/run has run them by now",
    'pytest -m ""': "tests: .ci/run has run all but the longest",
    "tools/nightly": "takes hours",
    "tools/release": "compiles for each Python, minutes each; .ci/run builds and tries a wheel",
    ".ci/run": "it is what runs this script",
}
# What people type at the root beside what pages show.
ALSO = ("python -m pytest -q tests/test_smoke.py", "python -m privfit budget")


def pages(root: Path = ROOT) -> list[Path]:
    """Where commands are shown."""
    names = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md")
    return [*(root / name for name in names), *sorted((root / "docs").rglob("*.md"))]


def commands(text: str) -> Iterator[str]:
    """The commands of a page, in order, without comments."""
    shown = r"```sh\n(.*?)```|`(python\s[^`]*)`"
    for block, inline in re.findall(
        shown, re.sub(r"```python\b.*?```", "", text, flags=re.S), re.S
    ):
        for line in block.splitlines() or [" ".join(inline.split())]:
            bare = re.sub(r"(^|\s)#.*", "", line).strip()
            yield from (part.strip() for part in bare.split("&&") if part.strip())


def snippets(text: str) -> list[str]:
    """The blocks of Python of a page."""
    return re.findall(r"```python\n(.*?)```", text, re.S)


def documented(root: Path = ROOT) -> list[str]:
    """Every command of every page, once."""
    texts = (page.read_text(encoding="utf-8") for page in pages(root))
    return list(dict.fromkeys(command for text in texts for command in commands(text)))


def shortened(command: str) -> str:
    """The command with what makes it short."""
    subject = re.match(r"python -m (bench \w+)", command)
    more = SHORT.get(command, SHORT.get(subject[1], "") if subject else "")
    return f"{command} {more}".strip()


# -------------------------------------------------------------------------- files of the examples


def write_examples(root: Path) -> None:
    """The tables that the pages' commands read, generated."""
    coins = random.Random(1)
    people = [
        {"age": age, "hours": coins.randint(10, 60), "sex": coins.choice(["Female", "Male"]),
         "income": ">50K" if age + coins.gauss(0, 10) > 50 else "<=50K"}
        for age in (coins.randint(17, 90) for _ in range(2_000))
    ]  # fmt: skip
    for name in ("people.csv", "new.csv", "test.csv", "synthetic.csv"):
        write_table(root / name, people)
    (root / "people.csv.gz").write_bytes(gzip.compress((root / "people.csv").read_bytes()))
    homes = [{"x": coins.uniform(0, 10), "y": coins.uniform(0, 10)} for _ in range(2_000)]
    for name, rows in (("places.csv", homes), ("homes.csv", homes), ("sites.csv", homes[:50])):
        write_table(root / name, rows)
    (root / "places.toml").write_text(
        "[columns]\nx = {low = 0, high = 10}\ny = {low = 0, high = 10}\n"
    )
    import pandas

    pandas.DataFrame(people).to_parquet(root / "people.parquet")


def write_table(path: Path, rows: list[dict[str, object]]) -> None:
    """A CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def confirm_draft(root: Path) -> None:
    """What the reader is told to do with a draft of a schema."""
    path = root / "schema.toml"
    if path.exists():
        draft = path.read_text(encoding="utf-8")
        path.write_text(draft.replace("[draft]\nread_from_data = true\n", ""), encoding="utf-8")


# -------------------------------------------------------------------------------------------- runs


def run(command: str | list[str], root: Path) -> str:
    """Run at the root; what went wrong, or nothing."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    shell = ["bash", "-c", command] if isinstance(command, str) else command
    try:
        done = subprocess.run(
            shell, cwd=root, env=env | {"PATH": path}, text=True, timeout=LIMIT, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT} s; give it options in SHORT"
    return "" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout[-3000:]}"


def main() -> int:
    """Run all of them; those that fail are named at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show the commands and end")
    listed = parser.parse_args().list
    wanted = [command for command in documented() if command not in NOT_RUN]
    if listed:
        print(*map(shortened, (*ALSO, *wanted)), sep="\n")
        print(*(f"not run: {command}: {why}" for command, why in NOT_RUN.items()), sep="\n")
        return 0
    if any((ROOT / "privfit" / "_kernels").glob("built.*")):
        sys.exit("kernels are built in place here; run this in a copy of the tree without them")
    write_examples(ROOT)
    code = snippets((ROOT / "bench" / "README.md").read_text(encoding="utf-8"))
    jobs = {f"snippet {i} of bench/README.md": [sys.executable, "-c", each]
            for i, each in enumerate(code, 1)}  # fmt: skip
    failed = []
    for name, job in (jobs | {each: each for each in map(shortened, (*ALSO, *wanted))}).items():
        start = time.monotonic()
        wrong = run(job, ROOT)
        confirm_draft(ROOT)
        print(f"{time.monotonic() - start:6.1f} s  {name}", flush=True)
        if wrong:
            failed.append(name)
            print(wrong, flush=True)
    if failed:
        sys.exit(f"{len(failed)} documented commands failed: {'; '.join(failed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
