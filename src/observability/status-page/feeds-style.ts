import { STYLE } from './style.js';

/** Style sheet of the list of feeds. In small windows the state of a feed is below its name. */
export const FEEDS_STYLE = `${STYLE}
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
@media (max-width: 40rem) {
  label { flex-basis: 100%; }
  .feeds thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .feeds tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .125rem 1rem; padding: .625rem 0; border-top: 1px solid var(--edge); }
  .feeds tr > * { border: 0; padding: 0; }
  .feeds th:first-child { width: auto; }
  .feeds td:nth-child(2) { grid-row: 2; grid-column: 1 / -1; }
}
`;
