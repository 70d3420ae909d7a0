"""The style of a report: one column, readable on a telephone and on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 58rem; padding: 1.5rem 1rem 3rem; background: #fff;
  color: #1c1c1c; font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word; }
header { border-bottom: 3px solid #0072B2; margin-bottom: 1.5rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem;
  border-bottom: 1px solid #d5d5d5; break-after: avoid; }
p, ul { margin: .5rem 0; }
.sub { color: #555; }
.glance { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .6rem;
  margin: 1rem 0; padding: 0; }
.glance div { background: #f2f6fa; border-left: 4px solid #0072B2; padding: .5rem .8rem; }
.glance dt { color: #555; font-size: .85rem; }
.glance dd { margin: 0; font-size: 1.1rem; font-weight: 600; }
.warning { background: #fdeee6; border-left: 4px solid #D55E00; padding: .6rem .8rem; }
.table { overflow-x: auto; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .28rem .8rem .28rem 0; border-bottom: 1px solid #e6e6e6;
  vertical-align: top; }
th { color: #444; font-weight: 600; border-bottom: 2px solid #bbb; }
.number { text-align: right; font-variant-numeric: tabular-nums; padding-left: .6rem; }
td:nth-child(2):last-child { overflow-wrap: anywhere; }
td:first-child { min-width: 7rem; }
figure { margin: .8rem 0 1.2rem; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .88rem; }
code { font-size: .9em; overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; border-top: 1px solid #d5d5d5; color: #555; font-size: .88rem; }
@media screen and (max-width: 34rem) {
  .stacked, .stacked tbody, .stacked tr, .stacked td { display: block; text-align: left; }
  .stacked th { display: none; }
  .stacked tr { border-bottom: 1px solid #bbb; padding: .3rem 0; }
  .stacked td { border: 0; padding: 0; }
  .stacked td:first-child { font-weight: 600; }
  .stacked td:empty { display: none; }
  .stacked td[data-name]:not([data-name=""])::before { content: attr(data-name) ": "; color: #555; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  tr, .glance div { break-inside: avoid; }
  .table { overflow: visible; }
  figure img { max-height: 15cm; }
}
"""
