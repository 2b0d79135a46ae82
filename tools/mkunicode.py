"""Writes src/tokenizer/unicode.txt from the unicodedata of this Python:

    python3 tools/mkunicode.py > src/tokenizer/unicode.txt

Hexadecimal numbers, separated by white space; a section begins with =NAME. The first number of a row is its difference
from the first number of the previous row. The other numbers are absolute:

    =category  first, category as a number of src/tokenizer/unicode.h: from this character up to the next row;
               ff: Lu and Ll in turn
    =class     first, canonical combining class: from this character up to the next row
    =canon     c, head, n characters: full canonical decomposition; Hangul is left out
    =compat    c, head, n characters: full compatibility decomposition where it differs from that
    =lower     c, head, n characters: lower case

The low 5 bits of head are n. If n is 1, the bits from 6 on count further characters that follow at a distance of 1 (2 if
bit 5 is set) and map to characters at the same distance. If n is more, bit 5 says that NFC does not compose to c.
"""
import textwrap
import unicodedata as ucd

LAST = 0x110000
HANGUL = range(0xAC00, 0xAC00 + 11172)
SURROGATES = range(0xD800, 0xE000)
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()


def section(name, rows):
    words, last = [], 0
    for row in rows:
        words += [f"{row[0] - last:x}", *(f"{x:x}" for x in row[1:])]
        last = row[0]
    print(f"={name}")
    print("\n".join(textwrap.wrap(" ".join(words), 110)))


def runs(f):
    last = None
    for c in range(LAST):
        now = f(chr(c))
        if now != last:
            yield c, now
            last = now


def categories():
    """Runs of categories; at least four that are Lu and Ll in turn are one row."""
    rows = [*runs(lambda ch: CATEGORIES.index(ucd.category(ch)))]
    while rows:
        n = 0
        while n + 1 < len(rows) and rows[n][1] == n % 2 and rows[n + 1][0] == rows[n][0] + 1:
            n += 1
        yield (rows[0][0], 0xFF) if n > 2 else rows[0]
        del rows[: n if n > 2 else 1]


def mappings(f, skip=lambda c: False):
    to = {c: f(chr(c)) for c in range(LAST) if c not in SURROGATES and not skip(c)}
    to = {c: [*map(ord, t)] for c, t in to.items() if t is not None}

    def run(c, by):
        n = 1
        while to.get(c + n * by) == [to[c][0] + n * by] and (by == 1 or c + n * by - 1 not in to):
            n += 1
        return n

    while to:
        c = next(iter(to))
        n = len(to[c])
        if n > 1:
            yield c, n + 32 * (ucd.normalize("NFC", chr(c)) != chr(c)), *to.pop(c)
            continue
        by = max(1, 2, key=lambda by: run(c, by))
        more = run(c, by) - 1
        yield c, n + 32 * (by - 1) + 64 * more, *to[c]
        for i in range(more + 1):
            del to[c + i * by]


def changed(form):
    return lambda ch: to if (to := ucd.normalize(form, ch)) != ch else None


def main():
    print(f"# made by tools/mkunicode.py from Unicode {ucd.unidata_version}; see there")
    section("category", categories())
    section("class", runs(ucd.combining))
    section("canon", mappings(changed("NFD"), lambda c: c in HANGUL))
    section("compat", mappings(lambda ch: to if (to := ucd.normalize("NFKD", ch)) != ucd.normalize("NFD", ch) else None))
    section("lower", mappings(lambda ch: ch.lower() if ch.lower() != ch else None))


main()
