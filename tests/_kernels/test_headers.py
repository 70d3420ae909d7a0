"""The two C headers: no warning, and the same bits from every instruction set."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from makers.places import ROOT

KERNELS = ROOT / "privfit" / "_kernels"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-ffp-contract=off"]
BUILDS = {"baseline": [], "portable": ["-U__SSE2__", "-U__AVX2__"]}
if platform.machine().lower() in {"x86_64", "amd64"}:
    BUILDS["avx2"] = ["-mavx2", "-mfma"]

# Every lane function on numbers that wrap, and every product of fixed.h, printed.
PROGRAM = r"""
#include <stdio.h>
#include "bytes.h"
#include "fixed.h"
#include "lanes.h"

static uint64_t state = 1;
static uint32_t word(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static void show(const char *name, lanes a) {
    int32_t v[LANES];
    lanes_store(v, a);
    printf("%s", name);
    for (int i = 0; i < LANES; i++) printf(" %d", v[i]);
    printf("\n");
}

static void show_four(const char *name, four a) {
    double v[4];
    four_store(v, a);
    printf("%s %a %a %a %a %a\n", name, v[0], v[1], v[2], v[3], four_sum(a));
}

int main(void) {
    for (int round = 0; round < 200; round++) {
        uint32_t x[LANES], y[LANES];
        int32_t small[LANES];
        for (int i = 0; i < LANES; i++) {
            x[i] = word(), y[i] = word();
            small[i] = pair_of((int16_t)(word() % 16385), (int16_t)(word() % 16385));
        }
        const lanes a = lanes_load(x), b = lanes_load(y), s = lanes_load(small);
        show("all", lanes_all((int32_t)word()));
        show("add", lanes_add(a, b)), show("sub", lanes_sub(a, b)), show("mul", lanes_mul(a, b));
        show("min", lanes_min(a, b)), show("and", lanes_and(a, b));
        show("left", lanes_left(a, round % 31)), show("right", lanes_right(a, round % 31));
        show("min16", lanes_min16(a, b)), show("min8", lanes_min8(a, b));
        show("words", lanes_words((const uint16_t *)(const void *)x));
        show("bytes", lanes_bytes((const uint8_t *)x));
        show("pairs", lanes_pairs(s, lanes_sub(lanes_all(0), s)));
        show("gaps", lanes_gaps(s, lanes_all(small[0])));
        printf("pair %d %d\n", pair_first(small[1]), pair_second(small[1]));
        uint8_t text[65];
        for (int i = 0; i < 65; i++) text[i] = (uint8_t)(word() % (round % 2 ? 256 : 5));
        const uint64_t among = bytes_among(text + round % 2, 1, text[9]);
        printf("among %llu %d\n", (unsigned long long)among, lowest_bit(among | 1ull << 63));
        uint16_t square[64], turned[64];
        for (int i = 0; i < 64; i++) square[i] = (uint16_t)word();
        transpose_words(square, 8, turned, 8);
        for (int i = 0; i < 64; i++) printf("%d ", turned[i]);
        const double d[4] = {(int32_t)word() / 3.0, 1e17, -(double)word(), 0x1p-40};
        const four f = four_load(d), g = four_of_words((const int16_t *)(const void *)square);
        show_four("four", f), show_four("words", g), show_four("zero", four_zero());
        show_four("sum", four_add(f, g)), show_four("difference", four_sub(f, g));
        show_four("product", four_mul(f, g)), show_four("size", four_abs(f));
        show_four("all", four_all(d[0])), show_four("lanes", four_of_lanes(small));
        show_four("min", four_min(f, g)), show_four("max", four_max(f, g));
        show_four("less", four_where_less(f, g, four_zero(), f));
        int32_t total[LANES];
        lanes_store(total, s);
        four_add_whole(total, four_mul(g, four_all((int32_t)word() * 0x1p-32)));
        show("added", lanes_load(total));
        fetch(d);
        const uint64_t p = (uint64_t)word() << 32 | word(), q = (uint64_t)word() << 32 | word();
        printf("%llu %llu\n", (unsigned long long)mul_high(p, q),
               (unsigned long long)gamma_fixed(p, word(), round));
    }
    static exp_tables t;
    for (int i = 0; i < 64; i++) t.whole[i] = (uint64_t)-1 >> i;
    for (int i = 0; i < 768; i++)
        t.byte[i / 256][i % 256] = (uint64_t)-1 - (uint64_t)i * 12345678901u;
    printf("%llu\n", (unsigned long long)exp_fixed(&t, 123456789012345678u));
    return 0;
}
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the program prints, built for each instruction set with all warnings as errors."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None or not (KERNELS / "lanes.h").exists():
        pytest.skip("no C compiler, or no headers beside these tests")
    folder = tmp_path_factory.mktemp("headers")
    source = folder / "program.c"
    source.write_text(PROGRAM)
    return {name: run(compiler, source, name, flags) for name, flags in BUILDS.items()}


def run(compiler: str, source: Path, name: str, flags: list[str]) -> str:
    program = source.with_name(name)
    command = [compiler, *STRICT, *flags, f"-I{KERNELS}", str(source), "-lm", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout


def test_lanes_are_the_same_bits_for_every_instruction_set(printed):
    assert len(printed["baseline"].splitlines()) == 200 * 30 + 1
    assert set(printed.values()) == {printed["baseline"]}
