"""The style sheet of the page: light and dark, wide and narrow. Nothing in it comes from a model."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f7f7f4; --card: #ffffff; --ink: #1d2328; --soft: #59636d; --hair: #e2e4df; --grid: #ecede9;
  --one: #2b6e8f; --one-soft: #2b6e8f2e; --two: #b5562a; --two-soft: #b5562a38; --three: #4e7d52;
  --roof: #7b848c; --code: #f1f2ee;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --card: #1b1f23; --ink: #e4e7e9; --soft: #9aa5ae; --hair: #2d3338; --grid: #262b30;
    --one: #6fb3d3; --one-soft: #6fb3d336; --two: #e3925f; --two-soft: #e3925f40; --three: #8dbd8f;
    --roof: #8a949c; --code: #22272c;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 1136px; padding: 40px 24px 72px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere;
}
h1 { font-size: 30px; line-height: 1.2; margin: 2px 0 6px; font-weight: 650; letter-spacing: -0.01em; }
h2 { font-size: 19px; line-height: 1.3; margin: 0 0 6px; font-weight: 650; }
p { margin: 0 0 12px; text-wrap: pretty; }
code { font-family: var(--mono); font-size: 0.9em; }
.kicker { margin: 0; color: var(--one); font-size: 13px; font-weight: 600; }
.circumstances, .lead { color: var(--soft); max-width: 78ch; }
.under { display: block; color: var(--soft); font-size: 13px; line-height: 1.4; font-weight: 400; }
.beside { color: var(--soft); font-size: 13px; margin-left: 4px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(152px, 1fr)); gap: 12px; margin: 24px 0 0; }
.tile { background: var(--card); border: 1px solid var(--hair); border-radius: 10px; padding: 12px 14px; }
.tile dt { color: var(--soft); font-size: 13px; }
.tile dd { margin: 0; font-size: 20px; line-height: 1.35; font-weight: 600; }

section { background: var(--card); border: 1px solid var(--hair); border-radius: 12px; }
section { padding: 24px; margin-top: 24px; }
section > :last-child, figure > :last-child { margin-bottom: 0; }
figure { margin: 12px 0 0; }
figure + figure { margin-top: 28px; }
figcaption { color: var(--soft); font-size: 13px; margin-top: 4px; }

details { margin-top: 12px; }
summary { cursor: pointer; color: var(--one); font-weight: 550; padding: 4px 0; }
summary:focus-visible { outline: 2px solid var(--one); outline-offset: 2px; border-radius: 4px; }

table { border-collapse: collapse; width: 100%; margin-top: 8px; font-size: 14px; }
th, td { text-align: right; padding: 8px 0 8px 18px; vertical-align: top; border-top: 1px solid var(--hair); }
thead th { border-top: 0; color: var(--soft); font-size: 13px; font-weight: 500; padding-bottom: 6px; }
th:first-child, td:first-child { text-align: left; padding-left: 0; font-weight: 400; }
.name { text-align: left; }
.wide { width: 44%; }
.bars { width: 20%; }
td.number { white-space: nowrap; }
.wide code { font-weight: 600; }
.bar { display: block; height: 10px; margin-top: 6px; border-radius: 3px; background: var(--grid); overflow: hidden; }
.fill { display: block; height: 100%; min-width: 2px; border-radius: 3px; background: var(--one); }
.fill.first { background: var(--two); }

.chart svg { display: block; width: 100%; height: auto; }
.chart .narrow { display: none; }
svg text { font-family: inherit; font-size: 12px; fill: var(--ink); }
svg .tick, svg .axis { fill: var(--soft); }
svg .grid { stroke: var(--grid); }
svg .frame { fill: none; stroke: var(--roof); stroke-width: 1; }
svg .roof { fill: none; stroke: var(--roof); stroke-width: 1.5; }
svg .roof-name { fill: var(--soft); }
svg .roof-name, svg .point-name, svg .bound-name { paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
svg .roof-name, svg .point-name, svg .bound-name { stroke-linejoin: round; }
svg .point { fill: var(--one-soft); stroke: var(--one); stroke-width: 1.25; }
svg .point.first { fill: var(--two-soft); stroke: var(--two); }
svg .point-name { font-weight: 600; }
svg .point.low { fill: var(--card); }
svg .used { fill: var(--one-soft); stroke: var(--one); stroke-width: 1.25; stroke-linejoin: round; }
svg .arena { stroke: var(--two); stroke-width: 1.5; }
svg .bound { stroke: var(--one); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .arena-name { fill: var(--two); font-weight: 600; }
svg .bound-name { fill: var(--one); font-weight: 600; }
svg .fullest { fill: var(--card); stroke: var(--one); stroke-width: 2; }
svg .piece { stroke: none; opacity: 0.72; }
svg .p0 { fill: var(--one); } svg .p1 { fill: var(--three); } svg .p2 { fill: var(--roof); }
svg .piece:hover, svg .point:hover { opacity: 1; stroke: var(--ink); }

.about { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 8px 0 12px; font-size: 14px; }
.about dt { color: var(--soft); }
.about dd { margin: 0; min-width: 0; }
.notes { margin: 0; padding-left: 20px; }
.tree { font-size: 13px; line-height: 1.45; }
.tree ul { list-style: none; margin: 0; padding: 0; }
.tree ul ul { margin-left: 6px; padding-left: 13px; border-left: 1px solid var(--hair); }
.node { display: flex; gap: 4px 24px; justify-content: space-between; padding: 3px 0; border-radius: 4px; }
.words { min-width: 0; }
.words.storage code, .words.other code { color: var(--soft); }
.figures { display: flex; flex: none; gap: 14px; color: var(--ink); white-space: nowrap; }
.key { color: var(--soft); }
.mark { display: inline-block; font-size: 12px; line-height: 1.35; padding: 1px 6px; border-radius: 4px; }
.mark { background: var(--code); color: var(--soft); }
.mark.parallel { background: var(--two-soft); color: var(--ink); }
.mark.vectorized { background: var(--one-soft); color: var(--ink); }
.long { margin: 0; display: inline; }
.long > summary { display: inline; padding: 0; color: inherit; font-weight: 400; }
.long[open] > summary { color: var(--soft); }
.long > code { display: block; background: var(--code); border-radius: 6px; padding: 8px 10px; margin: 4px 0; }

@media (max-width: 720px) {
  body { padding: 24px 12px 48px; }
  h1 { font-size: 24px; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tile { padding: 10px 12px; }
  .tile dd { font-size: 18px; }
  section { padding: 18px 12px; border-radius: 10px; margin-top: 16px; }
  .chart .wide { display: none; }
  .chart .narrow { display: block; }
  .cards, .cards tbody { display: block; }
  .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cards tr { display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 10px 0; border-top: 1px solid var(--hair); }
  .cards th, .cards td { display: block; padding: 0; border: 0; text-align: left; width: auto; }
  .cards th.wide, .cards td.bars { flex: 1 0 100%; }
  .cards td.number, .cards td.name { white-space: normal; }
  .cards td.empty { display: none; }
  .cards td[data-label]:not([data-label=""])::before { content: attr(data-label) " "; color: var(--soft); }
  .bar { margin: 4px 0 6px; }
  .about { grid-template-columns: 1fr; gap: 0; }
  .about dd { margin-bottom: 8px; }
  .tree ul ul { margin-left: 3px; padding-left: 6px; }
  .node { display: block; padding: 5px 0; }
  .figures { flex-wrap: wrap; gap: 0 12px; margin-top: 2px; white-space: normal; }
}
@media print {
  body { max-width: none; padding: 0; background: none; }
  section { break-inside: avoid-page; }
}
"""
