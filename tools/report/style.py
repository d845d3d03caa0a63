"""The style sheet and script of reports, as text that goes into the page: no file or address outside it is used.

Used by tools/report/page.py and tools/report/compare.py; the palette by the station's page too. It must not know what
a report holds.
"""

from stillwatch.base import shown

PALETTE = """
:root{color-scheme:light dark;--paper:#faf9f6;--card:#fff;--ink:#1d2227;--soft:#5d6770;--faint:#c9ced2;--rule:#e4e4df;
--novel:#c2410c;--novel-soft:#c2410c26;--calm:#0f6b78;--calm-soft:#0f6b7822;--bad:#a16207;--bad-soft:#a1620733;
--lightness:54%;--lightness-b:70%}
@media (prefers-color-scheme:dark){:root{--paper:#14181b;--card:#1b2024;--ink:#e7e9ea;--soft:#98a3ab;--faint:#4a545b;
--rule:#2b3237;--novel:#fb8c4e;--novel-soft:#fb8c4e2e;--calm:#5bbccb;--calm-soft:#5bbccb26;--bad:#e0b341;
--bad-soft:#e0b34133;--lightness:56%;--lightness-b:40%}}
"""
CSS = (
    PALETTE
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1120px;margin:0 auto;padding:40px 28px 80px}
h1,h2,.lead{font-family:"Iowan Old Style","Palatino Linotype",Palatino,"Book Antiqua",Georgia,serif;font-weight:500}
h1{font-size:34px;line-height:1.15;margin:0;letter-spacing:-.01em}
h2{font-size:23px;line-height:1.25;margin:56px 0 4px;letter-spacing:-.005em}
h3{font-size:13px;font-weight:600;margin:26px 0 8px;color:var(--soft)}
p{margin:0 0 10px;max-width:68ch;text-wrap:pretty}
.note{color:var(--soft);font-size:14px;margin-bottom:14px}
.meta{max-width:none;overflow-wrap:anywhere;color:var(--soft);font-size:14px;margin:8px 0 0}
.meta span+span:before{content:"\\00b7";margin:0 .55em}
.lead{font-size:21px;line-height:1.42;margin:22px 0 26px;max-width:56ch}
.lead b{font-weight:600}
a{color:inherit}
a:focus-visible,summary:focus-visible,button:focus-visible{outline:2px solid var(--calm);outline-offset:2px}
dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:1px;background:var(--rule);
border:1px solid var(--rule);border-radius:6px;overflow:hidden;margin:0}
dl.facts div{background:var(--card);padding:12px 14px 11px}
dl.facts dt{font-size:12.5px;color:var(--soft)}
dl.facts dd{margin:1px 0 0;font-size:20px;line-height:1.3}
dl.facts small{display:block;font-size:12.5px;color:var(--soft);line-height:1.35}
.warn{border-left:3px solid var(--bad);background:var(--bad-soft);padding:9px 14px;margin:18px 0 0;
border-radius:0 4px 4px 0;
font-size:14px}
.warn ul{margin:4px 0 0;padding-left:18px}
.plot{position:relative;padding-left:84px;margin-top:8px}
.plot .area{position:relative;border-bottom:1px solid var(--faint)}
.plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
.plot .y span{position:absolute;left:0;width:80px;text-align:right;font-size:11.5px;color:var(--soft);
transform:translateY(-50%);
line-height:1;white-space:nowrap}
.plot .y{position:absolute;left:0;top:0;bottom:22px;width:80px}
.plot .x{position:relative;height:22px;font-size:12px;color:var(--soft)}
.plot .x span{position:absolute;top:5px;transform:translateX(-50%);white-space:nowrap}
.plot .x span:first-child{transform:none}
.grid{stroke:var(--rule);stroke-width:1;vector-effect:non-scaling-stroke}
.line{fill:none;stroke:var(--calm);stroke-width:1.4;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.fill{fill:var(--calm-soft);stroke:none}
.line.b{stroke:var(--novel)}.fill.b{fill:none}
.threshold{stroke:var(--novel);stroke-width:1;stroke-dasharray:5 4;vector-effect:non-scaling-stroke;opacity:.75}
.threshold.low{opacity:.4}
.eventspan{fill:var(--novel-soft)}
.shade{fill:var(--faint);opacity:.28}
.refused{fill:var(--bad-soft)}
.hatch{fill:url(#hatch)}
.flag{position:absolute;bottom:100%;transform:translateX(-50%);font-size:11px;line-height:15px;padding:0 4px;
margin-bottom:3px;
border-radius:3px;background:var(--novel);color:var(--paper);text-decoration:none;white-space:nowrap}
.flag.above{bottom:calc(100% + 17px)}
.flag.dot{width:7px;height:7px;padding:0;border-radius:50%}
.flag:hover,.flag.on{outline:2px solid var(--novel);outline-offset:1px}
.timeline{margin-top:48px}
.timeline .area{cursor:crosshair}
.cursor{position:absolute;top:0;bottom:0;width:1px;background:var(--ink);opacity:.55;pointer-events:none;display:none}
.tip{position:absolute;top:6px;pointer-events:none;display:none;background:var(--card);border:1px solid var(--faint);
border-radius:4px;padding:5px 9px;font-size:12.5px;line-height:1.45;white-space:nowrap;z-index:3}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:12.5px;color:var(--soft);margin:6px 0 0 84px}
.key i{display:inline-block;width:16px;height:9px;margin-right:6px;border-radius:1px;vertical-align:baseline}
.key i.threshold{height:0;border-top:1.5px dashed var(--novel);vertical-align:4px}
.ribbons{margin:14px 0 0;padding-left:84px;position:relative}
.ribbons b{position:absolute;left:0;width:76px;text-align:right;font-weight:400;font-size:12px;color:var(--soft);
line-height:10px}
.ribbon{position:relative;height:10px;margin-bottom:6px;background:var(--rule);border-radius:2px;overflow:hidden}
.ribbon i{position:absolute;top:0;bottom:0}.ribbon i.good{background:var(--calm-soft)}.ribbon i.bad{
background:var(--bad)}
.events{display:grid;grid-template-columns:repeat(auto-fill,minmax(308px,1fr));gap:22px;margin-top:18px}
.event{background:var(--card);border:1px solid var(--rule);border-radius:6px;overflow:hidden;scroll-margin-top:20px}
.event:target{border-color:var(--novel);box-shadow:0 0 0 1px var(--novel)}
.picture{position:relative;background:var(--rule)}
.picture img{display:block;width:100%;height:auto}
.picture svg{position:absolute;inset:0;width:100%;height:100%}
.picture rect{fill:none;stroke:#000;stroke-opacity:.55;stroke-width:4;vector-effect:non-scaling-stroke}
.picture rect+rect{stroke:#ff9a4d;stroke-opacity:1;stroke-width:2}
.picture:hover svg{opacity:0}
.picture g rect+rect{stroke-width:1.3}.picture g.main rect+rect{stroke-width:2.4}
.opens{all:unset;display:block;position:relative;width:100%;cursor:zoom-in}
dialog{border:0;padding:0;background:none;max-width:none;max-height:none;margin:auto}
dialog::backdrop{background:#000c}
dialog .opens{cursor:zoom-out;width:min(96vw,128vh)}
.like{display:flex;gap:10px;align-items:center;margin-top:8px}.like .picture{flex:0 0 84px;border-radius:3px;
overflow:hidden}.like p{margin:0}
.sparkline small{display:block;font-size:12px;color:var(--soft)}
.event details{margin-top:8px}.event td{font-size:12.5px;overflow-wrap:anywhere}
.nopicture{aspect-ratio:4/3;display:grid;place-items:center;height:100%;color:var(--soft);font-size:13px}
.event .text{padding:11px 14px 13px}
.event h4{margin:0;font-size:15px;font-weight:600;display:flex;justify-content:space-between;gap:10px}
.event h4 span{font-weight:400;color:var(--soft)}
.event p{margin:3px 0 0;font-size:13.5px;color:var(--soft)}
.spark{display:block;width:100%;height:28px;margin-top:8px}
.spark .line{stroke:var(--novel)}.spark .fill{fill:var(--novel-soft)}
.severity{height:3px;background:var(--rule)}.severity i{display:block;height:100%;background:var(--novel)}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(148px,1fr));gap:16px 14px;margin-top:16px}
.gallery figure{margin:0}
.gallery .picture{border-radius:4px;overflow:hidden}
.gallery figcaption{font-size:12.5px;color:var(--soft);line-height:1.4;margin-top:5px}
.share{height:4px;background:var(--rule);margin-top:6px;border-radius:2px;overflow:hidden}
.share i{display:block;height:100%;background:var(--calm)}
.scroll.tall{max-height:none}
.visits{display:grid;grid-template-columns:repeat(auto-fill,minmax(330px,1fr));gap:14px 26px;margin-top:14px}
.visit{display:flex;gap:14px;align-items:center;scroll-margin-top:20px;min-width:0}
.visit .picture{flex:0 0 92px;border-radius:4px;overflow:hidden}.visit .text{min-width:0;flex:1}
.visit h4{margin:0;font-size:14px;font-weight:600}.visit p{margin:1px 0 4px;font-size:13px;color:var(--soft)}
.visit .strip{display:block;width:100%;height:22px;background:var(--calm-soft);border-radius:2px}
.visit .strip rect{fill:var(--calm)}
.scenes td{vertical-align:middle;padding:8px 14px 8px 0}
.scenes td.kind{min-width:150px;color:var(--soft)}
.scenes .kind b{font-weight:600;color:var(--ink)}
.scenes .picture{width:150px;border-radius:4px;overflow:hidden}
.gallery.topics{grid-template-columns:repeat(auto-fill,minmax(84px,1fr))}
.scenes.topics .picture{width:84px}
.picture .segments rect,.picture .segments rect+rect{stroke:none;fill-opacity:.55}
.event,.segmented{position:relative}.event>input,.segmented>input{position:absolute;opacity:0}
.event>label,.segmented>label{cursor:pointer;font-size:12px;color:var(--soft);padding:3px 8px;
text-decoration:underline dotted}
.event>input:focus-visible+label,.segmented>input:focus-visible+label{outline:2px solid var(--novel)}
.event .segments,.segmented .segments{display:none}.event>input:checked~.picture .segments{display:block}
.segmented>input:checked~.gallery .segments{display:block}.segmented>label{display:inline-block;padding-left:0}
.event>input:checked+label,.segmented>input:checked+label{color:var(--ink);font-weight:600}
.track{display:block;max-width:100%;margin-top:10px}
.stack path{stroke:var(--paper);stroke-width:.6;vector-effect:non-scaling-stroke}
.bars{display:grid;grid-template-columns:minmax(90px,auto) 1fr auto;gap:5px 12px;align-items:center;font-size:13.5px;
max-width:640px}
.bars .bar{height:9px;background:var(--rule);border-radius:2px;overflow:hidden}.bars .bar i{display:block;height:100%;
background:var(--calm)}
.bars b{font-weight:400;color:var(--soft);text-align:right}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(380px,1fr));gap:6px 44px}
.two>div{min-width:0}
.facts-table td:first-child{min-width:108px}
table{border-collapse:collapse;font-size:13.5px;width:100%}
th{font-weight:600;text-align:left;color:var(--soft);border-bottom:1px solid var(--faint);padding:4px 14px 4px 0;
white-space:nowrap}
td{border-bottom:1px solid var(--rule);padding:4px 14px 4px 0;vertical-align:top}
td.n,th.n{text-align:right}td.n{white-space:nowrap}
.scroll{overflow-x:auto;max-height:460px;overflow-y:auto}
details{margin-top:16px}summary{cursor:pointer;color:var(--soft);font-size:14px}
pre{font:12.5px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace;background:var(--card);
border:1px solid var(--rule);
border-radius:6px;padding:14px 16px;overflow-x:auto;max-height:420px}
code{font:12.5px ui-monospace,"SF Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
.empty{border:1px dashed var(--faint);border-radius:6px;padding:22px 24px;color:var(--soft);margin-top:16px}
.swatch{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:7px}
.switch{display:inline-flex;border:1px solid var(--faint);border-radius:5px;overflow:hidden;margin-top:8px}
.switch button{all:unset;cursor:pointer;font-size:12.5px;padding:3px 11px;color:var(--soft)}
.switch button[aria-pressed=true]{background:var(--ink);color:var(--paper)}
[hidden],.narrow{display:none}
@media(max-width:620px){.key{margin-left:0}td+td,code{overflow-wrap:anywhere}.bars{grid-template-columns:auto 1fr auto}
th{white-space:normal}.wide,.notices tr>:nth-child(2),.notices tr>:nth-child(3){display:none}.narrow{display:block}
.events,.visits{grid-template-columns:1fr}.gallery{grid-template-columns:1fr 1fr}.scenes td{padding-right:6px}
.scenes td.kind{min-width:86px}.scenes .picture{width:100%}
main{padding:24px 16px 60px}h1{font-size:27px}.lead{font-size:18px}.two{
grid-template-columns:1fr}
.plot,.ribbons{padding-left:80px}.plot .y,.plot .y span,.ribbons b{width:75px}.plot .y span{font-size:11px}
.plot .x span:nth-child(even){display:none}}
@media print{main{max-width:none;padding:0}.event,.gallery figure,.plot{break-inside:avoid}.switch,.tip,.cursor{
display:none}}
"""
)

SCRIPT = """
for(const box of document.querySelectorAll('.timeline')){
 const d=JSON.parse(box.querySelector('script').textContent),area=box.querySelector('.area'),
 cur=box.querySelector('.cursor'),tip=box.querySelector('.tip');
 const near=x=>{let a=0,b=d.x.length-1;while(a<b){const m=(a+b)>>1;d.x[m]<x?a=m+1:b=m}
  return a&&Math.abs(d.x[a-1]-x)<Math.abs(d.x[a]-x)?a-1:a};
 const hide=()=>{cur.style.display=tip.style.display='none'};
 area.addEventListener('pointermove',e=>{
  if(!d.x.length)return;
  const r=area.getBoundingClientRect(),f=(e.clientX-r.left)/r.width,i=near(f*1000);
  if(Math.abs(d.x[i]-f*1000)>12){hide();return}
  cur.style.display=tip.style.display='block';cur.style.left=d.x[i]/10+'%';
  tip.replaceChildren(...d.t[i].flatMap((t,k)=>k?[document.createElement('br'),t]:[t]));
  tip.style.left=f>.5?'auto':d.x[i]/10+1+'%';tip.style.right=f>.5?101-d.x[i]/10+'%':'auto';
 });
 area.addEventListener('pointerleave',hide);
}
const large=document.querySelector('dialog');
for(const b of document.querySelectorAll('.opens'))b.addEventListener('click',()=>{
 const copy=b.cloneNode(true);copy.addEventListener('click',()=>large.close());
 large.replaceChildren(copy);large.showModal()});
for(const s of document.querySelectorAll('.switch'))for(const b of s.children)b.addEventListener('click',()=>{
 for(const c of s.children){const on=c===b;c.setAttribute('aria-pressed',on);
  document.getElementById(c.dataset.show).hidden=!on}});
"""


def page(title: str, body: str) -> str:
    """Return a whole HTML document; what is no text in it, such as a file name, is escaped."""
    return shown(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none';img-src data:;"
        "style-src 'unsafe-inline';script-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{CSS}</style></head><body><main>{body}</main><dialog></dialog>"
        "<svg width='0' height='0' aria-hidden='true'><defs><pattern id='hatch' width='7' height='7' "
        "patternUnits='userSpaceOnUse' patternTransform='rotate(45)'><rect width='2' height='7' "
        "style='fill:var(--faint)'/></pattern></defs></svg>"
        f"<script>{SCRIPT}</script></body></html>"
    )
