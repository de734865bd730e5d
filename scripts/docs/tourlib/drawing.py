# SPDX-License-Identifier: GPL-2.0
"""Steps as a sequence diagram, in characters and as SVG."""

from xml.sax.saxutils import escape

from .steps import LANES

AT = (9, 30, 51, 79)        # columns of the lanes
WIDTH = AT[-1] + 32


def _blank():
    line = [' '] * WIDTH
    for column in AT:
        line[column] = '|'
    return line


def _put(line, column, text):
    line[column:column + len(text)] = text


def _text(line):
    return ''.join(line).rstrip()


def text(steps):
    head = [' '] * WIDTH
    for column, name in zip(AT, LANES):
        _put(head, column - len(name) // 2, name)
    lines = [_text(head)]
    for number, step in enumerate(steps, 1):
        label, line = f'{number}. {step.label}', _blank()
        start, end = AT[step.start], AT[step.end]
        if start == end:
            _put(line, start, '+ ' + label)
            lines.append(_text(line))
            continue
        first, last = sorted((start, end))
        room = last - first - 1
        above = _blank()
        if len(label) <= room:
            _put(above, first + 1 + (room - len(label)) // 2, label)
        else:
            _put(above, first + 2, label)
        arrow = '-' * (room - 1)
        _put(line, first + 1, arrow + '>' if start < end else '<' + arrow)
        lines += [_text(above), _text(line)]
    return '\n'.join(lines)


X = (90, 300, 510, 760)
STEP, TOP, RIGHT = 34, 50, 1050

HEAD = '''<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"
     font-size="13" role="img" aria-labelledby="title">
  <title id="title">{title}</title>
  <defs>
    <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
            orient="auto"><path d="M0 0 8 4 0 8z" fill="#444"/></marker>
    <style>
      .lane {{ stroke: #aaa; stroke-dasharray: 5 4 }}
      .ours {{ fill: #d8e8fa; stroke: #36649b }}
      .line {{ stroke: #444; stroke-width: 1.4; marker-end: url(#tip) }}
      .dot {{ fill: #36649b }}
      .head {{ font-weight: bold; text-anchor: middle }}
      .over {{ text-anchor: middle }}
      text {{ fill: #111 }}
    </style>
  </defs>
  <rect width="{width}" height="{height}" fill="#fff"/>
'''


def svg(steps, title):
    height = TOP + STEP * (len(steps) + 1)
    out = [HEAD.format(width=RIGHT, height=height, title=escape(title))]
    for x, name in zip(X, LANES):
        out.append(f'  <rect class="ours" x="{x - 55}" y="12" width="110" height="30" rx="4"/>\n'
                   f'  <text class="head" x="{x}" y="32">{escape(name)}</text>\n'
                   f'  <line class="lane" x1="{x}" y1="42" x2="{x}" y2="{height - 10}"/>\n')
    for number, step in enumerate(steps, 1):
        y, start, end = TOP + STEP * number - 10, X[step.start], X[step.end]
        label = escape(f'{number}. {step.label}')
        if start == end:
            out.append(f'  <circle class="dot" cx="{start}" cy="{y - 4}" r="4"/>\n'
                       f'  <text x="{start + 10}" y="{y}">{label}</text>\n')
            continue
        gap = 4 if start < end else -4
        out.append(f'  <line class="line" x1="{start}" y1="{y}" x2="{end - gap}" y2="{y}"/>\n'
                   f'  <text class="over" x="{(start + end) // 2}" y="{y - 6}">{label}</text>\n')
    return ''.join(out) + '</svg>\n'
