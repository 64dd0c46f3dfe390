/** Colours of the states on a light ground. */
export const TONES = { good: '#18794e', busy: '#1d5fc4', warn: '#8a5a00', bad: '#b42318', calm: '#4c5a70' } as const;

/** Style sheet. All text has a contrast of at least 4.5 to 1 in both colour schemes; a test measures it in a browser. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #f4f5f7; --card: #fff; --edge: #dfe3e9; --text: #1a212c; --quiet: #566172;
  --good: ${TONES.good}; --busy: ${TONES.busy}; --warn: ${TONES.warn}; --bad: ${TONES.bad}; --calm: ${TONES.calm};
  --bar: #5b6fd6; --hatch: #a9b2bf;
  font: 1rem/1.5 Inter, system-ui, sans-serif; color: var(--text); background: var(--ground);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1218; --card: #161c25; --edge: #2a333f; --text: #e7ebf1; --quiet: #9ba7b7;
    --good: #5fd09a; --busy: #7fb2ff; --warn: #f0b64a; --bad: #ff938a; --calm: #b3bfce;
    --bar: #8d9df5; --hatch: #4d5968;
  }
}
* { box-sizing: border-box; }
body { margin: 0; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1.5rem; padding-top: 1.25rem; color: var(--quiet); }
header p { margin: 0; overflow-wrap: anywhere; }
header strong { color: var(--text); }
main { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; padding-top: 1rem; padding-bottom: 1rem; }
section, figure { background: var(--card); border: 1px solid var(--edge); border-radius: .75rem; padding: 1.25rem; margin: 0; }
h1, h2, p, dl, dd, ul { margin: 0; padding: 0; }
h1 { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.015em; }
h2 { font-size: 1rem; margin-bottom: .75rem; }
.state { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .25rem 1rem; align-items: center; border-left: .375rem solid var(--tone); }
.state p { overflow-wrap: anywhere; }
.state svg { width: 2.75rem; height: 2.75rem; grid-row: span 3; color: var(--tone); }
.good { --tone: var(--good); } .busy { --tone: var(--busy); } .warn { --tone: var(--warn); } .bad { --tone: var(--bad); } .calm { --tone: var(--calm); }
dt, caption, figcaption, .quiet { color: var(--quiet); font-size: .875rem; }
dd { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.facts { padding: 0; overflow: hidden; background: var(--edge); }
.facts dl { display: flex; flex-wrap: wrap; gap: 1px; }
.facts div { background: var(--card); padding: 1rem 1.25rem; flex: 1 1 9.5rem; }
.facts dd { font-size: 1.375rem; line-height: 1.3; font-weight: 600; letter-spacing: -.01em; }
.facts .quiet { display: block; font-weight: 400; letter-spacing: 0; }
.errors { border-left: .375rem solid var(--tone); }
.errors ul { list-style: none; display: grid; gap: 1rem; }
.errors li { overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }
.chart { display: block; overflow: visible; width: calc(100% - 3.25rem); margin-left: 3.25rem; }
figcaption { margin-top: .5rem; }
text { font-size: .75rem; fill: var(--quiet); }
.value { dominant-baseline: central; }
.grid { stroke: var(--edge); }
.hatch { stroke: var(--hatch); stroke-width: 1px; }
.bar { fill: var(--bar); }
.failed { fill: var(--bad); }
.more dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); gap: .75rem 2rem; }
table { border-collapse: collapse; margin-top: .75rem; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; margin-bottom: .5rem; }
th, td { text-align: left; padding: .25rem .5rem .25rem 0; border-top: 1px solid var(--edge); font-weight: 400; }
thead th { border: 0; font-size: .875rem; color: var(--quiet); }
pre, code { font-size: .875rem; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
pre { margin: 0; padding: .75rem 1rem; overflow-x: auto; background: var(--ground); border-radius: .5rem; overflow-wrap: normal; }
pre:focus-visible { outline: 3px solid var(--busy); }
form { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; margin-bottom: .25rem; }
label { color: var(--quiet); font-size: .875rem; }
input { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet); border-radius: .5rem; padding: .25rem .75rem; }
input { flex: 1 1 10rem; min-width: 0; max-width: 24rem; }
input:focus-visible { outline: 3px solid var(--busy); outline-offset: 1px; }
.feeds th, .feeds td { vertical-align: top; padding: .5rem 1.5rem .5rem 0; overflow-wrap: anywhere; }
.feeds th:first-child { width: 36%; }
.feeds th:last-child, .feeds td:last-child { padding-right: 0; text-align: right; white-space: nowrap; }
.feeds td svg { width: 1.25rem; height: 1.25rem; vertical-align: -.25rem; margin-right: .5rem; color: var(--tone); }
.feeds strong { font-weight: 400; }
.feeds .bad strong, .feeds .warn strong { font-weight: 600; }
.feeds td .quiet { display: block; margin-left: 1.75rem; }
.feeds td .error { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
.text { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; overflow-wrap: anywhere; }
.text h2 { font-size: 1.25rem; margin: .5rem 0 0; }
.text th, .text td { vertical-align: top; padding: .5rem 1rem .5rem 0; }
.text table { margin: 0; }
.text td:first-child { min-width: 9.5rem; }
footer { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .5rem 1.5rem; padding-bottom: 2rem; font-size: .875rem; color: var(--quiet); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
a { color: var(--busy); text-underline-offset: .2em; }
button { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet); border-radius: .5rem; padding: .25rem .75rem; cursor: pointer; }
footer button { border: 0; padding: 0; color: var(--busy); text-decoration: underline; text-underline-offset: .2em; }
[hidden] { display: none; }
#gone { max-width: 60rem; margin: 1rem auto 0; padding: .75rem 1.25rem; color: var(--bad); background: var(--card); border: 2px solid var(--bad); border-radius: .75rem; font-weight: 600; }
a:focus-visible, button:focus-visible { outline: 3px solid var(--busy); outline-offset: 3px; border-radius: 2px; }
/* In small windows the state of a feed in the list is below its name. */
@media (max-width: 40rem) {
  label { flex-basis: 100%; }
  .feeds thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .feeds tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .125rem 1rem; padding: .625rem 0; border-top: 1px solid var(--edge); }
  .feeds tr > * { border: 0; padding: 0; }
  .feeds th:first-child { width: auto; }
  .feeds td:nth-child(2) { grid-row: 2; grid-column: 1 / -1; }
}
@media (forced-colors: active) {
  .grid, .hatch { stroke: CanvasText; }
  .bar, .failed, text { fill: CanvasText; }
}
`;
