#include "src/report/style.h"

namespace ckptverify {
namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--back:#fff;--text:#1c1f23;--dim:#5b6670;--rule:#dde1e5;
--card:#f4f6f8;--pass:#19723a;--fail:#b3261e;--open:#8a5a00;--pass-back:#edf7f0;
--fail-back:#fdf0ef;--open-back:#fdf6e7;--reference:#6da3dc;--restored:#c2410c}
@media(prefers-color-scheme:dark){:root{--back:#15181b;--text:#e6e8ea;--dim:#9aa4ad;--rule:#30363c;
--card:#1e2226;--pass:#5fd08a;--fail:#ff8a80;--open:#f0bd5c;--pass-back:#17241c;
--fail-back:#2a1a1a;--open-back:#282116;--reference:#4f86c2;--restored:#ff9d66}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif;
overflow-wrap:anywhere}
main{max-width:62rem;margin:0 auto;padding:1rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:.3rem 0 .8rem;text-wrap:balance}
h2{font-size:1.15rem;margin:2.4rem 0 .8rem;padding-top:.9rem;border-top:1px solid var(--rule)}
h2 small{font-weight:400;color:var(--dim);font-size:.85rem;margin-left:.5rem}
h3{font-size:.95rem;margin:1rem 0 .2rem}
p{margin:.4rem 0}ul{margin:.4rem 0;padding-left:1.2rem}li{margin:.15rem 0}
a{color:inherit;text-decoration-color:var(--dim);text-underline-offset:.2em}
:target{outline:2px solid var(--restored);outline-offset:4px;border-radius:4px}
code,pre,.mono{font:.875em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--card);padding:.5rem .7rem;border-radius:6px;white-space:pre-wrap;margin:.3rem 0}
.dim,small{color:var(--dim)}
.status{white-space:nowrap;color:var(--dim)}
.status.pass,.status.fail,.status.warn,.status.inconclusive,.status.waived{font-weight:600}
.status.pass{color:var(--pass)}.status.fail{color:var(--fail)}
.status.warn,.status.inconclusive,.status.waived{color:var(--open)}
.verdict{border-left:6px solid var(--open);background:var(--open-back);padding:1rem 1.2rem;
border-radius:6px}
.verdict.pass{border-color:var(--pass);background:var(--pass-back)}
.verdict.fail{border-color:var(--fail);background:var(--fail-back)}
.verdict>.status{text-transform:uppercase;letter-spacing:.06em;font-size:1rem}
.verdict.inconclusive>.status{color:var(--open)}
dl{margin:0;display:grid;grid-template-columns:fit-content(42%) minmax(0,1fr);gap:.35rem 1rem}
dt{color:var(--dim)}dd{margin:0}
.facts dt{font-weight:600}
.meta{margin-top:.9rem;font-size:.875rem;color:var(--dim)}
nav{margin:.8rem 0 0;font-size:.9rem;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem}
.finding{border-left:3px solid var(--open);padding:.05rem 0 .05rem .9rem;margin:0 0 .9rem}
.finding.fail{border-color:var(--fail)}
.finding{display:grid;grid-template-columns:13.5rem minmax(0,1fr);gap:0 1rem}
.finding .head{display:flex;flex-wrap:wrap;gap:0 .8rem;align-items:baseline;align-content:start}
.finding .head code{font-weight:600}
.finding p{margin:.1rem 0 .3rem}
.values{font-size:.9rem;gap:.1rem .8rem;margin:.1rem 0 .3rem}
.values dd{font:.93em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap}
.values dd.found{color:var(--fail)}.values dd.expected{color:var(--pass)}
.values dd pre{font:inherit;max-height:20rem;overflow-y:auto}
.values .lines{grid-column:1/-1}
.pair{display:flex;flex-wrap:wrap;gap:0 1.4rem}.pair dt,.pair dd{display:inline}
.word{white-space:nowrap}
details{margin:.2rem 0}summary{cursor:pointer}
.evidence>summary{font-size:.875rem;color:var(--dim)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;font-size:.875rem;color:var(--dim);
margin:.2rem 0 .7rem}
.key{display:inline-flex;align-items:center;gap:.5em}
.key svg{width:2.2em;height:.9em;flex:none}
.key>.bar{width:1.8em;position:static;flex:none}
.lane{display:grid;grid-template-columns:15rem minmax(0,1fr) 17rem;gap:0 .9rem;align-items:center;
padding:.3rem 0;font-size:.9rem}
.lane .facts{color:var(--dim);font-size:.85rem;line-height:1.35}
.track{position:relative;height:1rem;background:var(--card);border-radius:3px}
.bar{display:block;position:absolute;top:0;height:1rem;min-width:3px;border-radius:3px;
background:var(--reference)}
.bar.killed{border-right:4px solid var(--text)}
.bar.early{background:var(--open)}.bar.wrong{background:var(--fail)}
.ruler{padding:0}.ruler .track{background:none;font-size:.78rem;color:var(--dim)}
.tick{position:absolute;transform:translateX(-50%);white-space:nowrap}
.tick.first{transform:none}.tick.last{transform:translateX(-100%)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem 1rem .35rem 0;
border-bottom:1px solid var(--rule)}
th{font-weight:600;color:var(--dim)}
.identity{table-layout:fixed}
.identity .parts code{color:var(--fail);font-weight:600}
.identity .parts code::before{content:"\2260\00a0"}
.identity .equals code::before{content:"=\00a0";color:var(--dim)}
.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));
gap:1.2rem 1.6rem}
figure{margin:0}figcaption{font-size:.9rem}figcaption b{margin-right:.5rem}
.curves svg{width:100%;height:auto;display:block}
svg text{fill:var(--dim);font:11px system-ui,sans-serif}
svg text.killed,svg text.lost{fill:var(--text);font-weight:600}
.grid{stroke:var(--rule)}.axis{stroke:var(--dim)}
.kill{stroke:var(--text);stroke-dasharray:4 3}
polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}
.reference polyline{stroke:var(--reference);stroke-width:5}
.restored polyline{stroke:var(--restored);stroke-width:2}
.restored .dot{fill:var(--restored)}
.restored .parted{fill:none;stroke:var(--fail);stroke-width:2}
.share{display:flex;height:1rem;border-radius:3px;overflow:hidden;background:var(--card);
margin:.4rem 0}
.share span{min-width:2px}.share .a,.swatch.a{background:var(--reference)}
.share .b,.swatch.b{background:var(--dim)}.share .c,.swatch.c{background:var(--open)}
.share .d,.swatch.d{background:var(--rule)}.share .e,.swatch.e{background:var(--fail)}
.swatch{display:inline-block;width:.8em;height:.8em;border-radius:2px}
.composition{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));
gap:.1rem 1.4rem;font-size:.9rem}
.composition div{display:flex;justify-content:space-between;gap:1rem;
border-bottom:1px solid var(--rule);padding:.15rem 0}
.composition span:first-child{flex:none;max-width:60%}.composition span{text-align:right}
.family{border-bottom:1px solid var(--rule);padding:.25rem 0}
.check{display:grid;grid-template-columns:8.2rem 11.5rem minmax(0,1fr);gap:0 .8rem;
padding:.25rem 0 .25rem 1.1rem;font-size:.93rem}
.check>code{font-size:.92em;line-height:1.6}
.timing{font-size:.9rem}
@media(max-width:44rem){
h1{font-size:1.35rem}main{padding:.6rem .75rem 3rem}.verdict{padding:.8rem .9rem}
.values{grid-template-columns:fit-content(34%) minmax(0,1fr);font-size:.85rem}
.finding{display:block}.facts{display:block}.facts dt{margin-top:.5rem;font-size:.85rem}
.lane{grid-template-columns:minmax(0,1fr);padding:.4rem 0}
.ruler span:empty{display:none}.ruler .track{height:1.2rem}
.check{grid-template-columns:auto minmax(0,1fr);padding-left:.2rem;gap:0 .7rem}
.check>.what{grid-column:1/-1}
h2 small{display:block;margin:0}
.identity thead{display:none}
.identity tr{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:0 .4rem;
padding:.45rem 0;border-bottom:1px solid var(--rule)}
.identity td{border:0;padding:0}.identity td:nth-child(1){grid-column:1/3;font-weight:600}
.identity td:nth-child(5){grid-area:1/3;text-align:right}
.identity tr:first-child td[data-place]::before{content:attr(data-place);display:block;
font-size:.75rem;color:var(--dim)}
.identity code{font-size:.72rem}}
@media print{body{font-size:11pt}main{max-width:none;padding:0}nav,summary::marker{display:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
details::details-content{content-visibility:visible;height:auto;display:block}
.finding,figure,.lane,.check,tr{break-inside:avoid}h2,h3{break-after:avoid}
.values dd pre{max-height:none}}
)css";

}  // namespace

std::string_view page_style() {
  return kStyle;
}

}  // namespace ckptverify
