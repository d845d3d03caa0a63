// What the pages do beyond showing what the server drew: local times, live parts, keys, large pictures, replay.
// Every page is whole without it. Parts are replaced by the server's own HTML; nothing is drawn here.
'use strict';

const two = n => String(n).padStart(2, '0');

// Times: UTC from the server, the reader's own clock beside it.
function localTimes(root) {
  for (const t of root.querySelectorAll('time.when:not([data-told])')) {
    const d = new Date(t.dateTime);
    t.dataset.told = '1';
    if (isNaN(d)) continue;
    const offset = -d.getTimezoneOffset(), sign = offset < 0 ? '\u2212' : '+';
    const zone = `UTC${sign}${Math.floor(Math.abs(offset) / 60)}${offset % 60 ? ':' + two(Math.abs(offset) % 60) : ''}`;
    const sameDay = d.getDate() === d.getUTCDate();
    const small = document.createElement('small');
    small.textContent = ` · ${sameDay ? '' : d.getDate() + ' ' + d.toLocaleString('en', {month: 'short'}) + ' '}` +
      `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())} ${offset ? 'here (' + zone + ')' : 'here'}`;
    t.append(small);
  }
}

function ages() {
  for (const t of document.querySelectorAll('time.ago')) {
    const s = Math.max(0, (Date.now() - new Date(t.dateTime)) / 1000);
    t.textContent = s < 2 ? 'just now' : s < 60 ? `${Math.floor(s)} s ago` :
      s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 172800 ? `${Math.floor(s / 3600)} h ago` :
      `${Math.floor(s / 86400)} d ago`;
  }
}

// Live parts: an element says by data-on which news make it fetch itself again, by data-every how often at most.
const parts = new Map();
function part(element) {
  let p = parts.get(element.id);
  if (!p) parts.set(element.id, p = {last: 0, timer: 0, busy: false, again: false, shown: ''});
  return p;
}

function wanted(element, news) {
  const kinds = element.dataset.on.split(' '), agent = element.dataset.agent;
  return news.some(([kind, who]) => kinds.includes(kind) && (!agent || agent === who || kind === 'act'));
}

function refresh(element) {
  const p = part(element), wait = p.last + Number(element.dataset.every) - Date.now();
  if (p.busy) { p.again = true; return; }
  if (p.timer) return;
  p.timer = setTimeout(() => { p.timer = 0; fetchPart(element.id, p); }, Math.max(0, wait));
}

async function fetchPart(id, p) {
  const element = document.getElementById(id);
  if (!element || document.hidden) { p.again = !!element; return; }
  p.busy = true;
  try {
    const answer = await fetch(element.dataset.live, {headers: {'X-Part': '1'}});
    if (answer.status === 401) { location.reload(); return; }
    if (answer.status === 204) element.hidden = true;
    else if (answer.ok) await show(element, await answer.text(), p);
  } catch { /* the feed says that the station is not heard */ }
  p.busy = false;
  p.last = Date.now();
  if (p.again) { p.again = false; refresh(element); }
}

// A picture that would be swapped in is fetched before: nothing flickers.
async function fetched(html) {
  const made = document.createElement('template');
  made.innerHTML = html;
  const pictures = [...made.content.querySelectorAll('.large img')].slice(0, 2);
  const late = new Promise(done => setTimeout(done, 1500));
  await Promise.race([late, Promise.all(pictures.map(i => {
    const picture = new Image();
    picture.src = i.getAttribute('src');
    return picture.decode().catch(() => 0);
  }))]);
}

async function show(element, html, p) {
  if (element.contains(document.activeElement) && document.activeElement.matches('input,textarea,select')) return;
  if (p.shown === html) return;
  await fetched(html);
  const open = [...element.querySelectorAll('details')].map(d => d.open);
  const held = element.contains(document.activeElement) ? keyOf(document.activeElement) : '';
  const known = new Set([...element.querySelectorAll('[data-item]')].map(e => e.dataset.item));
  const scrolled = [...element.querySelectorAll('.film,.scroll')].map(e => [e.scrollLeft, e.scrollTop]);
  element.innerHTML = html;
  element.hidden = false;
  p.shown = html;
  element.querySelectorAll('details').forEach((d, i) => { d.open = !!open[i]; });
  element.querySelectorAll('.film,.scroll').forEach((e, i) => {
    if (scrolled[i]) [e.scrollLeft, e.scrollTop] = scrolled[i];
  });
  if (known.size) for (const e of element.querySelectorAll('[data-item]'))
    if (!known.has(e.dataset.item)) e.classList.add('fresh');
  if (held) [...element.querySelectorAll('a,button')].find(e => keyOf(e) === held)?.focus();
  localTimes(element);
  ages();
}

const keyOf = e => `${e.tagName} ${e.getAttribute('href') || ''} ${e.closest('form')?.getAttribute('action') || ''}`;

function listen() {
  const address = document.body.dataset.feed, light = document.getElementById('feed');
  if (!address || !light) return;
  const live = () => [...document.querySelectorAll('[data-live]')];
  const feed = new EventSource(address);
  let wasLost = false;
  feed.addEventListener('open', () => {
    light.textContent = 'live';
    light.classList.remove('lost');
    if (wasLost) live().forEach(refresh);
    wasLost = false;
  });
  feed.addEventListener('error', () => {
    light.textContent = 'not heard, trying again';
    light.classList.add('lost');
    wasLost = true;
  });
  feed.addEventListener('news', e => {
    const news = JSON.parse(e.data);
    for (const element of live()) if (wanted(element, news)) refresh(element);
  });
  feed.addEventListener('missed', () => live().forEach(refresh));
  for (const element of live()) if (element.dataset.poll) {
    refresh(element);
    setInterval(() => refresh(element), Number(element.dataset.poll));
  }
  document.addEventListener('visibilitychange', () => { if (!document.hidden) live().forEach(refresh); });
  addEventListener('pagehide', () => feed.close());
}

// Keys: what a control says by data-key; j and k also choose among the cards of a list.
function keys() {
  document.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches('input:not([type=range]),textarea,select')) return;
    const key = e.key.toLowerCase(), control = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (control && !(key === ' ' && e.target.matches('button,a,summary'))) {
      e.preventDefault();
      control.matches('input,select') ? control.focus() : control.click();
      return;
    }
    const items = [...document.querySelectorAll('[data-item]')];
    if (!items.length || !['j', 'k'].includes(key)) return;
    const at = items.findIndex(i => i.classList.contains('chosen'));
    const next = items[Math.min(items.length - 1, Math.max(0, at + (key === 'j' ? 1 : -1)))];
    items.forEach(i => i.classList.toggle('chosen', i === next));
    next.querySelector('.text a').focus();
  });
}

function largePictures() {
  const large = document.getElementById('large');
  document.addEventListener('click', e => {
    const opener = e.target.closest('.opens');
    if (!opener) return;
    if (large.contains(opener)) { large.close(); return; }
    const shown = opener.cloneNode(true);
    shown.title = 'Close';
    large.replaceChildren(shown);
    large.showModal();
  });
}

// Replay: the day's moments one after the other, the pauses between them shortened.
function replay() {
  const player = document.getElementById('player');
  if (!player) return;
  const range = document.getElementById('at'), play = document.getElementById('play');
  const film = document.getElementById('moments'), clock = document.getElementById('clock');
  const cursor = document.querySelector('.strip .cursor'), moments = [...film.children];
  let timer = 0;
  const go = i => {
    range.value = i;
    moments.forEach((m, k) => m.classList.toggle('on', k === i));
    const here = moments[i];
    film.scrollTo({left: here.offsetLeft - film.offsetLeft - film.clientWidth / 2 + here.clientWidth / 2});
    clock.textContent = here.querySelector('time').firstChild.textContent.slice(11, 19) + ' UTC';
    if (cursor) for (const end of ['x1', 'x2']) cursor.setAttribute(end, here.dataset.x + '%');
    cursor?.removeAttribute('visibility');
  };
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = 'Play'; play.setAttribute('aria-pressed', 'false'); };
  play.addEventListener('click', () => {
    if (timer) { stop(); return; }
    if (Number(range.value) >= moments.length - 1) go(0);
    play.textContent = 'Pause';
    play.setAttribute('aria-pressed', 'true');
    timer = setInterval(() => {
      const next = Number(range.value) + 1;
      if (next >= moments.length) stop(); else go(next);
    }, 900);
  });
  range.addEventListener('input', () => { stop(); go(Number(range.value)); });
  go(0);
}

localTimes(document);
ages();
setInterval(ages, 1000);
listen();
keys();
largePictures();
replay();
