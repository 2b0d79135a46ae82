"""The page of `make demo` in a browser: digits that are drawn with the mouse are read while they are drawn, by keys it is cleared, and nothing is asked of
anybody. The module of README.md, from a server, too."""
import math
import os
import shutil
from lib.browser import Browser, Serve
from lib.core import ROOT, Fail, Skip, Test, must, want
from suite.cli import Cli

MODEL = os.path.join(ROOT, "models", "digits.onnx")


def arc(x, y, rx, ry, start, end, n=24):
    """Degrees; 0 is to the right, 90 below."""
    turn = [math.radians(start + (end - start) * i / n) for i in range(n + 1)]
    return [(x + rx * math.cos(t), y + ry * math.sin(t)) for t in turn]


def line(*points, n=8):
    return [(a[0] + (b[0] - a[0]) * i / n, a[1] + (b[1] - a[1]) * i / n) for a, b in zip(points, points[1:]) for i in range(n + 1)]


# Strokes on a pad of 280 by 280, as people write.
STROKES = {"0": [arc(140, 140, 62, 95, -90, 270)], "1": [line((105, 85), (145, 45), (145, 235))], "2": [arc(140, 95, 55, 50, 190, 380) + line((190, 115), (90, 235), (205, 235))],
           "3": [arc(130, 90, 60, 48, 200, 440) + arc(130, 186, 65, 50, -90, 160)], "4": [line((150, 45), (80, 160), (215, 160)), line((165, 105), (165, 240))],
           "7": [line((80, 55), (205, 55), (125, 235))]}


def tools():
    for tool, package in (("clang", "clang"), ("wasm-ld", "lld")):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed: Debian has it in {package}")


def draw(c):
    tools()
    must(["make", "-C", ROOT, "demo"], "make demo")
    with Browser(c.env) as b:
        p = b.open("file://" + os.path.join(c.env.build, "demo", "digits.html"), width=800, height=560)
        p.wait("document.body.dataset.ready")
        want(p.eval("document.querySelector('#answer').textContent") == "", "an answer before anything is drawn")
        left, top = p.eval("(() => { const r = document.querySelector('#pad').getBoundingClientRect(); return [r.x + 1, r.y + 1]; })()")
        read = {}
        for digit, strokes in STROKES.items():
            p.key("Escape")
            want(p.eval("document.querySelector('#answer').textContent") == "", "Escape does not clear")
            first = strokes[0]
            p.mouse("mouseMoved", left + first[0][0], top + first[0][1])
            p.mouse("mousePressed", left + first[0][0], top + first[0][1], button="left", buttons=1, clickCount=1)
            for x, y in first[1:len(first) // 2]:
                p.mouse("mouseMoved", left + x, top + y, button="left", buttons=1)
            want(p.eval("document.querySelector('#answer').textContent") != "", f"{digit}: no answer while it is drawn")
            for x, y in first[len(first) // 2:]:
                p.mouse("mouseMoved", left + x, top + y, button="left", buttons=1)
            p.mouse("mouseReleased", left + first[-1][0], top + first[-1][1], button="left", clickCount=1)
            for stroke in strokes[1:]:
                p.drag([(left + x, top + y) for x, y in stroke])
            read[digit] = p.eval("document.querySelector('#answer').textContent")
            p.shot(c.path(f"drawn-{digit}.png"))
        want("µs a run" in p.eval("document.querySelector('#facts').textContent"), "no time of a run")
        p.click("#clear")
        want(p.eval("document.querySelector('#answer').textContent") == "", "the button does not clear")
        p.fine()
        wrong = {digit: seen for digit, seen in read.items() if seen != digit}
        if wrong:
            raise Fail(f"what was drawn, and what was read: {wrong}")
        p = b.open(p.url, dark=True, width=400, height=800)
        p.wait("document.body.dataset.ready")
        p.shot(c.path("dark.png"))
        p.fine()


def module(c):
    """import { load } in a page, from a server; the bits that ingot computes."""
    tools()
    c.run("build", MODEL, "-d", "batch=1", "-o", "digits.wasm", "--quiet")
    c.save("index.html", b'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>module</title><script type="module">import { load } from "./digits.mjs";\n'
           b"const net = await load(); const image = new Float32Array(64);\nfor (let y = 0; y < 8; y++) image[8 * y + 3] = image[8 * y + 4] = 1;\n"
           b"window.answer = [net.selftest(), Array.from(net.run({ image }).probability)];</script>")
    with Serve(c.dir) as s, Browser(c.env) as b:
        p = b.open(s.url + "index.html")
        tested, probability = p.wait("window.answer")
        want(tested is True and len(probability) == 10 and probability[1] > 0.99, f"{tested}, {probability}")
        p.fine()


def tests(env):
    return [Test(f"heavy/demo/{fn.__name__}", lambda fn=fn: fn(Cli(env, "heavy_demo_" + fn.__name__)), cost=10) for fn in (draw, module)]
