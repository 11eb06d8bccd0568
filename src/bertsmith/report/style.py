"""How pages look: one sheet, light and dark, narrow and wide."""

from __future__ import annotations

STYLE = """
:root { --ink: #1b1f24; --dim: #5f6874; --paper: #fff; --line: #dde2e8; --soft: #f5f7f9;
  --accent: #3b78d8; --good: #2f9e5b; --bad: #d9682b; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --dim: #98a1ab; --paper: #15181c; --line: #363c44; --soft: #1d2126; }
}
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto 4rem; padding: 0 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
.lead { font-size: 1.2rem; line-height: 1.45; max-width: none; }
.dim { color: var(--dim); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .3rem 0 .8rem; }
td, th { text-align: left; padding: .2rem 1.1rem .2rem 0; vertical-align: top; }
th { font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap; }
.rows td, .rows th { border-bottom: 1px solid var(--line); }
.rows tr.head th { color: var(--dim); font-weight: 500; font-size: .9em;
  white-space: normal; vertical-align: bottom; max-width: 9rem; }
.rows td:first-child { min-width: 6.5rem; }
.facts th { color: var(--dim); font-weight: 500; white-space: nowrap; }
pre { white-space: pre-wrap; border-left: 3px solid var(--line); padding-left: 1rem;
  font-size: 13px; }
.scroll { overflow-x: auto; overflow-wrap: normal; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--dim); font-size: 12px; }
svg .grid { stroke: var(--line); } svg .frame { stroke: var(--dim); fill: none; }
svg .even { stroke: var(--dim); stroke-dasharray: 5 4; fill: none; }
.chart svg { min-width: 34rem; } .square { max-width: 27rem; }
.bars { display: grid; grid-template-columns: minmax(5rem, auto) 1fr auto; gap: .35rem .9rem;
  align-items: center; margin: 1rem 0 1.2rem; max-width: 46rem; }
.track { background: var(--soft); border-radius: 4px; height: 1.15rem; overflow: hidden; }
.fill { display: block; height: 100%; background: #8b97a6; }
.fill.own { background: var(--accent); }
.value { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.own { font-weight: 600; }
.matrix td, .matrix th { padding: .28rem .5rem; text-align: right; border: 1px solid var(--line);
  min-width: 2.6rem; }
.matrix th { font-weight: 500; } .matrix th.name { text-align: left; white-space: nowrap; }
.matrix td.none { color: var(--dim); }
.card { background: var(--soft); border-radius: 8px; padding: .7rem 1rem; margin: .6rem 0; }
.card p { margin: .3rem 0; max-width: none; white-space: pre-line; }
.card .place { color: var(--dim); font-size: .85em; }
.said { display: flex; flex-wrap: wrap; gap: .15rem 1.4rem; }
.truth { color: var(--good); } .answer { color: var(--bad); } .said b { font-weight: 600; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--accent); }
@media (max-width: 34rem) {
  body { margin-top: 1rem; padding: 0 .9rem; } .lead { font-size: 1.08rem; }
  td, th { padding-right: .7rem; }
}
@media print { details > * { display: block; } body { max-width: none; } }
"""
