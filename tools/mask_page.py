"""The page of the `mask` command: one frame, polygons by clicks, nothing from outside.

Used by tools/mask.py. It must not know where a mask goes.
"""

import base64
import json

_STYLE = """
:root{color-scheme:light dark}
body{margin:0;font:15px/1.5 system-ui,sans-serif;background:#faf9f6;color:#1d2227}
@media (prefers-color-scheme:dark){body{background:#14181b;color:#e7e9ea}}
main{max-width:1100px;margin:0 auto;padding:18px}
p{margin:0 0 12px;max-width:72ch}
#view{position:relative;touch-action:manipulation}
#view img{display:block;width:100%}
#view svg{position:absolute;inset:0;width:100%;height:100%;cursor:crosshair}
polygon{fill:#c2410c66;stroke:#ff9a4d;stroke-width:2;vector-effect:non-scaling-stroke}
polygon:hover{fill:#c2410caa}
polyline{fill:none;stroke:#ff9a4d;stroke-width:2;vector-effect:non-scaling-stroke}
.corner{stroke-width:11;stroke-linecap:round}
button{font:inherit;padding:6px 16px;margin:12px 10px 0 0}
#told{margin-top:10px;font-weight:600}
"""

_SCRIPT = """
const box=document.querySelector('#view svg'),told=document.querySelector('#told'),NS=box.namespaceURI;
let polygons=JSON.parse(document.querySelector('#given').textContent),open=[];
const text=points=>points.map(p=>p.join(',')).join(' ');
const make=(name,points)=>{const e=document.createElementNS(NS,name);e.setAttribute('points',text(points));
 box.append(e);return e};
function draw(){
 box.replaceChildren();
 polygons.forEach((p,i)=>make('polygon',p).addEventListener('click',e=>{
  if(open.length)return;e.stopPropagation();polygons.splice(i,1);draw()}));
 if(open.length)make('polyline',open);
 open.forEach(p=>make('polyline',[p,p]).setAttribute('class','corner'));
}
function back(){if(open.length)open.pop();else polygons.pop();draw()}
function close(){if(open.length>2)polygons.push(open);open=[];draw()}
box.addEventListener('click',e=>{
 const r=box.getBoundingClientRect(),clip=v=>Math.min(Math.max(v,0),1);
 const x=clip((e.clientX-r.left)/r.width),y=clip((e.clientY-r.top)/r.height);
 const near=open.length>2&&Math.hypot((x-open[0][0])*r.width,(y-open[0][1])*r.height)<12;
 if(near){close();return}
 open.push([+x.toFixed(4),+y.toFixed(4)]);draw();
});
addEventListener('keydown',e=>{
 if(e.key==='Enter')close();
 if(e.key==='Escape'){open=[];draw()}
 if(e.key==='Backspace'){e.preventDefault();back()}
});
document.querySelector('#save').addEventListener('click',async()=>{
 close();
 const answer=await fetch(location.href,{method:'POST',body:JSON.stringify(polygons)});
 told.textContent=answer.ok?'Saved. This page can be closed.':'Not saved: '+await answer.text();
});
document.querySelector('#back').addEventListener('click',back);
document.querySelector('#clear').addEventListener('click',()=>{polygons=[];open=[];draw()});
draw();
"""


def page(jpeg: bytes, width: int, height: int, polygons: object) -> str:
    """Return the whole page for a frame of this size, with the polygons that there are already (shares)."""
    given = json.dumps(polygons).replace("<", "\\u003c")
    picture = base64.b64encode(jpeg).decode()
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Stillwatch mask</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none';img-src data:;connect-src 'self';"
        "style-src 'unsafe-inline';script-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><main><p>Click corners around what must not be watched: a road, a "
        "neighbour's window, a clock in the picture. A click on the first corner, or Enter, closes an area; Undo, or "
        "Backspace, takes back the last corner, or area; a click on an area takes it away.</p>"
        f"<div id='view' style='max-width:calc(66vh*{width}/{height})'><img "
        f"alt='A frame of the source, {width} by {height} pixels' src='data:image/jpeg;base64,{picture}'>"
        "<svg viewBox='0 0 1 1' preserveAspectRatio='none' role='img' "
        "aria-label='masked areas'></svg></div><button id='save'>Save</button><button id='back'>Undo</button>"
        "<button id='clear'>Remove all</button>"
        f"<div id='told' role='status'></div><script type='application/json' id='given'>{given}</script>"
        f"<script>{_SCRIPT}</script></main></body></html>"
    )
