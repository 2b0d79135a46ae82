"""Writes src/tokenizer/unicode.txt from the unicodedata of this Python:

    python3 tools/mkunicode.py > src/tokenizer/unicode.txt

Hexadecimal numbers, separated by white space; a section begins with =NAME. The first number of a row is its difference
from the first number of the previous row. The other numbers are absolute:

    =category  first, category as a number of src/tokenizer/unicode.h: from this character up to the next row
    =class     first, canonical combining class: from this character up to the next row
    =canon     c, n, n characters: full canonical decomposition; Hangul is left out
    =compat    c, n, n characters: full compatibility decomposition where it differs from that
    =compose   a, b, c: a and b compose to c in NFC (Hangul left out)
    =lower     c, n, n characters: lower case
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


def mappings(f, skip=lambda c: False):
    for c in range(LAST):
        if c in SURROGATES or skip(c):
            continue
        to = f(chr(c))
        if to is not None:
            yield c, len(to), *map(ord, to)


def changed(form):
    return lambda ch: to if (to := ucd.normalize(form, ch)) != ch else None


def pairs():
    for c in range(LAST):
        parts = ucd.decomposition(chr(c)).split()
        if len(parts) == 2 and parts[0][0] != "<" and ucd.normalize("NFC", chr(c)) == chr(c):
            yield int(parts[0], 16), int(parts[1], 16), c


def main():
    print(f"# made by tools/mkunicode.py from Unicode {ucd.unidata_version}; see there")
    section("category", runs(lambda ch: CATEGORIES.index(ucd.category(ch))))
    section("class", runs(ucd.combining))
    section("canon", mappings(changed("NFD"), lambda c: c in HANGUL))
    section("compat", mappings(lambda ch: to if (to := ucd.normalize("NFKD", ch)) != ucd.normalize("NFD", ch) else None))
    section("compose", sorted(pairs()))
    section("lower", mappings(lambda ch: ch.lower() if ch.lower() != ch else None))


main()
