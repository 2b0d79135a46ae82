"""Renders chat templates with the package Jinja2, with the settings and extensions of Hugging Face.

    python mkchats.py FOLDER

writes cases.json: rows of template, variables and text; null if Jinja2 raises.
Runs with the Python of build/lm.
"""
import json
import os
import sys
from datetime import datetime, timezone

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import SandboxedEnvironment

USER = [{"role": "user", "content": "What is 1+1?"}]
CHAT = [{"role": "system", "content": "  Be brief. "}, {"role": "user", "content": "Hi <|im_end|>\n'quoted' \"x\" ü 北"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello!"},
        {"role": "user", "content": "é\u00a0"}]
TOOLS = [{"type": "function", "function": {"name": "add", "description": "adds <b>", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}}}]
VARS = [{"messages": USER, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"},
        {"messages": CHAT, "add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>", "enable_thinking": False},
        {"messages": CHAT, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "tools": TOOLS, "date_string": "26 Jul 2024", "n": 3, "f": 2.5, "none": None,
         "words": ["b", "A", "c", "a", "b"]}]

WHOLE = [
    # SmolLM2
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
    "Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}",
    # similar to Llama 3
    "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- set date_string = strftime_now('%d %b %Y') %}\n{%- endif %}\n{%- if messages[0]['role'] == 'system' %}\n"
    "    {%- set system_message = messages[0]['content']|trim %}\n    {%- set messages = messages[1:] %}\n{%- else %}\n    {%- set system_message = '' %}\n{%- endif %}\n"
    "{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}\n{{- 'Today Date: ' + date_string + '\\n\\n' }}\n{{- system_message }}\n{{- '<|eot_id|>' }}\n"
    "{%- for message in messages %}\n    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n{%- endif %}\n",
    # similar to Qwen 3
    "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0].role == 'system' %}\n        {{- messages[0].content + '\\n\\n' }}\n    {%- endif %}\n"
    "    {%- for tool in tools %}\n        {{- '\\n' }}\n        {{- tool | tojson }}\n    {%- endfor %}\n    {{- '<|im_end|>\\n' }}\n{%- endif %}\n"
    "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n{%- for message in messages[::-1] %}\n"
    "    {%- set index = (messages|length - 1) - loop.index0 %}\n    {%- if ns.multi_step_tool and message.role == 'user' and message.content is string and not "
    "(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}\n        {%- set ns.multi_step_tool = false %}\n"
    "        {%- set ns.last_query_index = index %}\n    {%- endif %}\n{%- endfor %}\n{%- for message in messages %}\n    {%- if message.content is string %}\n"
    "        {%- set content = message.content %}\n    {%- else %}\n        {%- set content = '' %}\n    {%- endif %}\n    {%- if message.role == 'assistant' %}\n"
    "        {%- set reasoning_content = '' %}\n        {%- if '</think>' in content %}\n            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1]"
    ".lstrip('\\n') %}\n            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n        {%- endif %}\n        {%- if loop.index0 > ns.last_query_index %}\n"
    "            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content }}\n        {%- else %}\n"
    "            {{- '<|im_start|>' + message.role + '\\n' + content }}\n        {%- endif %}\n    {%- else %}\n        {{- '<|im_start|>' + message.role + '\\n' + content }}\n"
    "    {%- endif %}\n    {{- '<|im_end|>\\n' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n"
    "    {%- if enable_thinking is defined and enable_thinking is false %}\n        {{- '<think>\\n\\n</think>\\n\\n' }}\n    {%- endif %}\n{%- endif %}",
    # similar to Gemma
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
]

SMALL = """
{{ 'a' ~ 1 ~ none ~ f ~ true }}|{{ words }}|{{ tools }}|{{ 1.0 }} {{ 1e3 if false else 12.25 }} {{ undefined_thing }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 * 3 + 1 }} {{ 2 - -1 }} {{ 'ab' * 3 }} {{ (1, 2) }} {{ (1,) }} {{ [1, [2, 'x']] }}
{{ {'a': 1, 'b': [True, none]} }} {{ {'a': 1}['a'] }} {{ {'a': {'b': 2}}.a.b }} {{ {}|length }}
{% for x in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for x in [] %}x{% else %}none{% endfor %} {% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }},{% endfor %}
{% for x in words if x != 'b' %}{{ x }}{{ loop.index }}{% endfor %} {% for x in words %}{% if x == 'c' %}{% break %}{% endif %}{% if x == 'A' %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}
{% set ns = namespace(a=1, b='x') %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}
{% macro m(a, b='B', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(c=3, a='z') }}{{ m() }}
{% set t %}in {{ n }}{% endset %}{{ t }}{{ t|length }} {% set u | upper %}abc{% endset %}{{ u }} {% filter upper %}text{{ n }}{% endfilter %}
{% generation %}answer{% endgeneration %}
{{ words|sort }} {{ words|unique|list }} {{ words|min }} {{ words|max }} {{ words|first }} {{ words|last }} {{ words|join(', ') }} {{ words|reverse|list }} {{ words|sort(reverse=true)|join }}
{{ 'abc'|upper }} {{ 'ABC'|lower }} {{ 'hello world'|capitalize }} {{ 'hello world'|title }} {{ '  x '|trim }}| {{ 'aXbX'|replace('X', '--') }} {{ 'a\nb\n\nc'|indent(2) }} {{ 'a\nb'|indent(2, true) }}
{{ '12'|int + 1 }} {{ 'x'|int(5) }} {{ 3.7|int }} {{ n|string + '!' }} {{ missing|default('d') }} {{ ''|default('e', true) }} {{ ''|d('f') }} {{ none|default('g', boolean=true) }} {{ -3|abs }}
{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|rejectattr('role', 'eq', 'user')|map(attribute='role')|list }} {{ messages|map(attribute='role')|join(',') }}
{{ messages|selectattr('name', 'defined')|list }} {{ words|map('upper')|join }} {{ words|select('in', ['a', 'b'])|list }} {{ words|reject('equalto', 'b')|list }} {{ {'b': 1, 'A': 2}|dictsort }}
{{ {'b': 1}|items|list }} {{ 'abc'|list }} {{ 'x'|safe }} {{ words|length }} {{ 'üx'|length }} {{ words|tojson }} {{ {'a': [1, 2.5, none, true, 'é"\n<']}|tojson }}
{{ tools|tojson(indent=2) }} {{ []|tojson(indent=4) }} {{ {}|tojson }}
{{ n is defined }} {{ zz is defined }} {{ zz is undefined }} {{ none is none }} {{ n is string }} {{ 'x' is string }} {{ {} is mapping }} {{ [] is iterable }} {{ [] is sequence }} {{ 'x' is sequence }}
{{ true is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 3 is number }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 3 is not none }} {{ n is number and n > 2 }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ' a  b  c '.split(none, 1) }} {{ 'xxaxx'.strip('x') }} {{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}| {{ 'ab'.startswith('a') }} {{ 'ab'.endswith(('b', 'c')) }}
{{ 'a-b-c'.replace('-', '+', 1) }} {{ 'ab'.upper() }} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1}.keys()|list }} {{ {'a': 1}.values()|list }} {{ ','.join(['x', 'y']) }}
{{ words[0] }} {{ words[-1] }} {{ words[1:3] }} {{ words[::-1] }} {{ words[:-1] }} {{ words[::2] }} {{ words[10:] }} {{ 'hello'[1:4] }} {{ 'hello'[::-1] }} {{ 'hello'[-3:] }} {{ words[-10:2] }}
{{ 'a' in words }} {{ 'z' not in words }} {{ 'ell' in 'hello' }} {{ 'a' in {'a': 1} }} {{ not true }} {{ not n == 3 }} {{ 1 if n == 3 else 2 }} {{ 1 if n == 4 }} {{ true and 'x' or 'y' }} {{ none or 'z' }} {{ 1 < 2 }} {{ 'a' < 'b' }} {{ 2 >= 2 }} {{ [1] == [1] }} {{ 1 == 1.0 }} {{ 'a' == 1 }}
  {% if n %}
    indented {{ n }}
  {% endif %}
line {%- if n %} x {%- endif -%}   joined
  {# a comment #}
a {#- b -#} c {% if n -%}    y   {%- endif %}
x   {%+ if n %}kept{% endif %}
{{- ' left' }}   {{ 'right ' -}}   end
{% if n == 1 %}1{% elif n == 3 %}3{% else %}0{% endif %}{% if zz %}1{% elif none %}2{% else %}3{% endif %}
{{ "it's" }} {{ 'say "x"' }} {{ ["it's", 'say "x"', "both ' and \\" here", 'new\nline', 'tab\t'] }} {{ 'con' 'cat' }} {{ '\\u00e9\\x41' }}
{{ {'a':{'b':1}}}} {{ range(3)|list }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|list }} {{ strftime_now('%Y-%m-%d') }} {{ [1, 2] + [3] }} {{ dict(a=1) }}
{% for a in [1, 2] %}{% for b in [3, 4] %}{{ a }}{{ b }}{{ loop.index }} {% endfor %}{{ loop.index }}{% endfor %} {% for x in 'ab' %}{{ x }}.{% endfor %} {% for k in {'p': 1} %}{{ k }}{% endfor %}
{{ messages[0].content|trim ~ eos_token }} {{ messages[0]['content'][:4] }} {{ (messages|first).role }} {{ messages[-1]['content'].strip() }} {{ loop is defined }}
{{ strftime_now is defined }} {{ range is callable }} {{ strftime_now is not defined }} {% set f = range %}{{ f(2)|list }} {{ none|selectattr('a')|list }} {{ none|map('upper')|list }}
{{ '<a>'|safe + "<b>&'\"" }} {{ '<a>' + '<b>'|safe }} {{ '<a>'|safe ~ '<b>' }} {{ '{}-{}'.format(1, 'x') }} {{ '{1}{0}{{}}'.format('a', 'b') }} {{ '{k}'.format(k=2) }}
{{ n.x }}|{{ words.foo is defined }}|{{ messages[99] is defined }}
{{ undefined_thing + 'x' }}
{{ words + 1 }}
""".strip("\n").split("\n")


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def fail(text):
    raise jinja2.exceptions.TemplateError(text)


def main():
    env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals.update(raise_exception=fail, strftime_now=lambda f: datetime.fromtimestamp(1700000000, timezone.utc).strftime(f))
    rows = []
    whole = [*WHOLE, "\n".join(s for s in SMALL if "undefined_thing +" not in s and "words + 1" not in s and "n.x" not in s) + "\n", "a\r\n{% if n %}\r\nb\r\n{% endif %}\r\n", "", "\n", "x\n\n"]
    for template in whole + SMALL:
        for variables in VARS:
            try:
                text = env.from_string(template).render(**variables)
            except (jinja2.exceptions.TemplateError, TypeError):
                text = None
            rows.append((template, variables, text))
    with open(os.path.join(sys.argv[1], "cases.json"), "w") as f:
        json.dump(rows, f)


main()
