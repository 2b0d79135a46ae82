"""Features of the headless browser that other tests use: clicks and keys, reports of errors and requests, colors, window sizes."""
import os
from lib.browser import Browser, Serve
from lib.core import Fail, Test, want

PAGE = """<!doctype html><meta charset="utf-8"><title>t</title>
<style>body { color: rgb(1, 2, 3) } @media (prefers-color-scheme: dark) { body { color: rgb(4, 5, 6) } }</style>
<button onclick="this.textContent = 'clicked'">b</button><input id="in" onkeydown="if (event.key == 'Enter') document.title = this.value">
"""


def refused(page):
    try:
        page.fine()
    except Fail:
        return True
    return False


def pages(env):
    folder = env.scratch("heavy", "browser")
    with open(os.path.join(folder, "page.html"), "w", encoding="utf-8") as f:
        f.write(PAGE)
    with open(os.path.join(folder, "bad.html"), "w", encoding="utf-8") as f:
        f.write("<!doctype html><meta charset=utf-8><script>throw new Error('thrown on purpose')</script>")
    with open(os.path.join(folder, "outside.html"), "w", encoding="utf-8") as f:
        f.write("<!doctype html><meta charset=utf-8><img src='http://127.0.0.1:9/none.png'>")
    with Browser(env) as b, Serve(folder) as web:
        for base in ("file://" + folder + "/", web.url):
            p = b.open(base + "page.html", dark=True, width=321, height=400)
            p.click("button")
            p.wait("document.querySelector('button').textContent == 'clicked'")
            p.click("#in")
            p.type("é <b>")
            p.key("Enter")
            want(p.eval("document.title") == "é <b>", f"the title is {p.eval('document.title')}")
            want(p.eval("[innerWidth, getComputedStyle(document.body).color]") == [321, "rgb(4, 5, 6)"], "size or colors")
            p.shot(os.path.join(folder, "shot.png"))
            want(open(os.path.join(folder, "shot.png"), "rb").read(8) == b"\x89PNG\r\n\x1a\n", "no screenshot")
            if base.startswith("file:"):
                p.fine()
        want(refused(b.open("file://" + folder + "/bad.html")), "an exception is not seen")
        want(refused(b.open("file://" + folder + "/outside.html")), "a request is not seen")


def tests(env):
    return [Test("heavy/browser", lambda: pages(env), cost=5)]
